"""Make ./lite_data: 20 real photographs of ImageNet in four classes, split into train and val.

They come out of the wheel of the package foolbox, which is read as a zip file and never imported or
installed. The download is kept and every image is checked against its hash: a second run needs no
network. Where no package registry can be reached, images are generated, and called that.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mobilenet.drawing import draw
from mobilenet.files import write_new
from mobilenet.problems import ProblemError, at_least, run

PACKAGE = "foolbox==3.3.4"
WHEEL = "foolbox-3.3.4-py3-none-any.whl"
WHEEL_SHA256 = "11049d515d38e765e206a73ace9cc648b81a0d6d1da9ad9057e149ee117989cb"
NOTE = "GENERATED.txt"

# class, split, name in the wheel (its last number is the ImageNet class), first half of its SHA-256
IMAGES = """
animal train imagenet_00_243.jpg 28b7b933c8028c6e20bf74a86a709eda
animal train imagenet_14_129.jpg ad9371d813bf24b0365ee2f78f28c087
animal train imagenet_16_251.jpg ce3440a3b7beb6ca3009817504c44d39
animal train imagenet_17_22.jpg b432341845620e9cfd67d848c4783c32
animal train imagenet_18_317.jpg b9412f92f0b1c3faede45b55a4494097
animal val imagenet_15_99.jpg 4b588649cd835d4c65521727ebee03d9
animal val imagenet_19_305.jpg e1f58f00e2e47ce930d7ecab0e46a783
building_or_vehicle train imagenet_05_853.jpg 8a449436c61da867528b1f4efaf8ae83
building_or_vehicle train imagenet_06_609.jpg fb061102a4e58b3ed942bb2a4f9542e1
building_or_vehicle train imagenet_13_471.jpg 52ed0e738b90d27afcabc3e92c81ae63
building_or_vehicle val imagenet_07_609.jpg 2c297ad1e5c4804a647e9b34bc02ee2f
building_or_vehicle val imagenet_08_915.jpg c6a3411a3987799f0de45adc142f00ca
object train imagenet_01_559.jpg 5f03b0c74dff01b5b4195d0beabcae2a
object train imagenet_02_438.jpg ccef0734c1a65549c6cb5adb0f5d9b1c
object train imagenet_09_455.jpg ace3716b60ac5843269b270e17020e4f
object train imagenet_10_541.jpg f325c71d9f4290ee45e99bd7ad42f4bf
object val imagenet_11_630.jpg 892dff58fc528fe63d2df0c783aa3eca
object train imagenet_12_741.jpg 6c256e17545b25bbf2e06cf6513ff48d
plant train imagenet_03_990.jpg c7f0b2f1e9ee39d8f900759e8983afa2
plant val imagenet_04_949.jpg a7f62f3c1d214de4718c7253871ab382
"""
ROWS = [line.split() for line in IMAGES.strip().splitlines()]
DEMO = "imagenet_16_251.jpg"


def main() -> None:
    """Make data, archive and demo image."""
    parser = argparse.ArgumentParser(description="Make ./lite_data, its archive and a demo image.")
    add = parser.add_argument
    add("--data-path", type=Path, default=Path("./lite_data"))
    add("--archive", type=Path, default=Path("./lite_data.tar"))
    add("--demo-image", type=Path, default=Path("./images/demo.jpg"))
    add("--downloads", type=Path, default=Path("./downloads"), help="where the wheel is kept")
    add("--offline", action="store_true", help="do not try to download anything")
    add("--generated", action="store_true", help="make generated images, whatever is there")
    add("--generated-size", type=at_least(32), default=224, help="side of generated images")
    args = parser.parse_args()

    images = None if args.generated else real_images(args.downloads, offline=args.offline)
    if images is None:
        images = generated_images(args.generated_size)
        origin = "generated images, not photographs"
    else:
        origin = f"photographs of ImageNet, out of {PACKAGE}"
    place(images, args.data_path, generated=origin.startswith("generated"))
    pack(args.data_path, args.archive)
    write_new(args.demo_image, images[DEMO])
    found = {split: len(list(args.data_path.glob(f"{split}/*/*"))) for split in ("train", "val")}
    if sum(found.values()) != len(ROWS):
        raise ProblemError(f"{args.data_path} holds {sum(found.values())} images of {len(ROWS)}")
    print(f"{args.data_path}: {found['train']} train and {found['val']} val images ({origin})")
    print(f"{args.archive}, {args.demo_image}: written")


def real_images(downloads: Path, *, offline: bool) -> dict[str, bytes] | None:
    """Return the photographs by name, or None where they cannot be had.

    Raises:
        ProblemError: the wheel or an image in it is not the one it has to be.
    """
    wheel = downloads / WHEEL
    if not wheel.is_file() and not offline:
        download(downloads)
    if not wheel.is_file():
        return None
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        raise ProblemError(f"{wheel} is damaged, or another file of that name: delete it")
    images = {}
    with zipfile.ZipFile(wheel) as archive:
        for _, _, name, expected in ROWS:
            data = archive.read(f"foolbox/data/{name}")
            if not hashlib.sha256(data).hexdigest().startswith(expected):
                raise ProblemError(f"{name} in {wheel} is not the expected image")
            images[name] = data
    return images


def download(downloads: Path) -> None:
    """Ask pip for the wheel; not getting it is not an error here."""
    downloads.mkdir(parents=True, exist_ok=True)
    print(f"downloading {PACKAGE} into {downloads}", flush=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "1"]
    command += ["--disable-pip-version-check", "--timeout", "15", "--dest", str(downloads), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip() or "pip failed").splitlines()[-1]
        print(f"{PACKAGE} cannot be downloaded: {reason}", flush=True)


def generated_images(size: int) -> dict[str, bytes]:
    """Draw stripes, checks, rings and noise, a class each; the same images every time."""
    kinds = sorted({row[0] for row in ROWS})
    images = {}
    for number, (kind, _, name, _) in enumerate(ROWS):
        random = np.random.default_rng(number)
        pattern = draw(kinds.index(kind), size, random)
        colours = random.uniform(60, 195, 3) + pattern[..., None] * random.uniform(30, 60, 3)
        stream = io.BytesIO()
        Image.fromarray(colours.astype(np.uint8)).save(stream, "JPEG", quality=90)
        images[name] = stream.getvalue()
    return images


def place(images: dict[str, bytes], folder: Path, *, generated: bool) -> None:
    """Write the class folders; nothing of an earlier preparation stays.

    Raises:
        ProblemError: there are files of somebody else in the way.
    """
    own = set(images) | {f"generated_{name}" for name in images}
    for path in sorted(path for split in ("train", "val") for path in folder.glob(f"{split}/**/*")):
        if path.is_file() and path.name not in own:
            raise ProblemError(
                f"{path} is not of this data set: --data-path has to be a new folder"
            )
    wanted = {}
    for kind, split, name, _ in ROWS:
        target = folder / split / kind / (f"generated_{name}" if generated else name)
        wanted[target] = images[name]
    for split in ("train", "val"):
        for path in [path for path in folder.glob(f"{split}/**/*") if path.is_file()]:
            if path not in wanted:
                path.unlink()
    for target, data in wanted.items():
        write_new(target, data)
    note = folder / NOTE
    if generated:
        write_new(note, b"These images were generated by tools/prepare_data.py: no photographs.\n")
    else:
        note.unlink(missing_ok=True)


def pack(folder: Path, archive: Path) -> None:
    """Write an archive that is the same, byte for byte, every time."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = tarfile.TarInfo(f"lite_data/{path.relative_to(folder)}")
                entry.size = path.stat().st_size
                with path.open("rb") as content:
                    tar.addfile(entry, content)
    write_new(archive, stream.getvalue())


if __name__ == "__main__":
    run(main)
