"""Small archives in the two layouts of CIFAR-10, made from the same arrays."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

Bytes = npt.NDArray[np.uint8]


def arrays(each: int = 20, seed: int = 0) -> dict[str, Bytes]:
    """Make random images: five batches to train with, one to test with, all classes alike."""
    random = np.random.default_rng(seed)
    made = {}
    for split, batches in (("train", 5), ("test", 1)):
        number = batches * each
        made[f"{split}_images"] = random.integers(0, 256, (number, 3, 32, 32), np.uint8)
        made[f"{split}_labels"] = random.permutation(np.arange(number) % 10).astype(np.uint8)
    return made


def batches(data: dict[str, Bytes]) -> dict[str, tuple[Bytes, Bytes]]:
    """Split the training images into their five batches."""
    images, labels = np.split(data["train_images"], 5), np.split(data["train_labels"], 5)
    made = {f"data_batch_{n + 1}": (images[n], labels[n]) for n in range(5)}
    return made | {"test_batch": (data["test_images"], data["test_labels"])}


def by_python_3(images: Bytes, labels: Bytes) -> bytes:
    """Pickle a batch as a script of today does."""
    batch = {
        b"batch_label": b"a batch",
        b"labels": [int(label) for label in labels],
        b"data": images.reshape(len(images), -1),
        b"filenames": [b"%d.png" % number for number in range(len(images))],
    }
    return pickle.dumps(batch, protocol=2)


def by_python_2(images: Bytes, labels: Bytes) -> bytes:
    """Pickle a batch as Python 2 did for the official archive, opcode by opcode."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value  # SHORT_BINSTRING

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)  # BININT

    raw = images.tobytes()
    dtype = (
        b"cnumpy\ndtype\n" + text(b"u1") + number(0) + number(1) + b"\x87R"
        + b"(" + number(3) + text(b"|") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
    )  # fmt: skip
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        b"cnumpy\nndarray\n" + number(0) + b"\x85" + text(b"b") + b"\x87R"
        + b"(" + number(1) + number(len(images)) + number(3072) + b"\x86" + dtype + b"\x89"
        + b"T" + struct.pack("<i", len(raw)) + raw + b"tb"
    )  # fmt: skip
    listed = b"](" + b"".join(number(int(label)) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + listed + b"u."


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    """Write a tar.gz of some files."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def official(path: Path, data: dict[str, Bytes], *, python: int = 2, **replaced: bytes) -> Path:
    """Write an archive in the official layout; single batches can be replaced."""
    pickled = by_python_2 if python == 2 else by_python_3
    made = {name: pickled(*batch) for name, batch in batches(data).items()} | replaced
    members = {f"cifar-10-batches-py/{name}": content for name, content in made.items()}
    return write_tar(path, {"cifar-10-batches-py/readme.html": b"<html>", **members})


def npm(path: Path, data: dict[str, Bytes], **replaced: bytes) -> Path:
    """Write an archive in the layout of the npm package: one image a row of a PNG."""

    def png(images: Bytes) -> bytes:
        stream = io.BytesIO()
        rows = images.transpose(0, 2, 3, 1).reshape(len(images), 1024, 3)
        Image.fromarray(np.ascontiguousarray(rows)).save(stream, "PNG")
        return stream.getvalue()

    def labels(values: Any) -> bytes:
        return json.dumps([int(value) for value in values]).encode()

    made = {f"{name}.png": png(images) for name, (images, _) in batches(data).items()}
    made["train_lables.json"] = labels(data["train_labels"])
    made["test_lables.json"] = labels(data["test_labels"])
    made |= {name.replace("__", "."): content for name, content in replaced.items()}
    return write_tar(path, {f"package/{name}": content for name, content in made.items()})
