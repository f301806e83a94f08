"""The files of Fashion-MNIST: arrays of bytes in the IDX format, packed with gzip."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mobilenet.problems import ProblemError

CLASSES = "classes.txt"
FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "val": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Read one file.

    Raises:
        ProblemError: it is missing or is no such file.
    """
    try:
        data = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise ProblemError(f"{path} does not exist") from None
    except (OSError, EOFError, zlib.error) as error:
        raise ProblemError(f"{path} is damaged: {error}") from None
    try:
        return parse_idx(data)
    except ValueError as error:
        raise ProblemError(f"{path} is damaged: {error}") from None


def parse_idx(data: bytes) -> npt.NDArray[np.uint8]:
    """Read two zero bytes, the type (8 for bytes), the number of axes, their sizes, the values.

    Raises:
        ValueError: they are not that.
    """
    axes = data[3] if len(data) > 3 else 0
    if data[:3] != b"\0\0\x08" or not axes or len(data) < 4 + 4 * axes:
        raise ValueError("it is no IDX file of bytes")
    shape = tuple(int(size) for size in np.frombuffer(data, ">i4", axes, 4))
    if len(data) != 4 + 4 * axes + math.prod(shape):
        raise ValueError(f"its size is not that of {list(shape)} bytes")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape)


def write_idx(array: npt.NDArray[np.uint8]) -> bytes:
    """Return the bytes of such a file, not packed yet."""
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    return head + array.tobytes()
