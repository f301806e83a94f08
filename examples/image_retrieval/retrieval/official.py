"""Reads ``cifar-10-python.tar.gz``, the official form of CIFAR-10, without trusting it.

The archive holds six pickles. A pickle is a program, and Python's own ``pickle.load`` runs whatever
it says. Here it may name three things of numpy and one of the codecs; each is replaced by a
stand-in that only keeps the bytes, and anything else is refused.
"""

from __future__ import annotations

import io
import pickle
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from retrieval.problems import ProblemError

Bytes = npt.NDArray[np.uint8]
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST = ("test_batch",)
_PIXELS = 3 * 32 * 32
_LARGEST = 64 << 20  # a batch has 31 MB


class _Array:
    """Stands in for ``numpy.ndarray``: keeps the state that a pickle would give to one."""

    def __init__(self, *_: object) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state


class _Dtype(_Array):
    """Stands in for ``numpy.dtype``: keeps its name."""

    def __init__(self, name: object = None, *_: object) -> None:
        super().__init__()
        self.name = name.decode() if isinstance(name, bytes) else name


def _encode(text: str, codec: object) -> bytes:
    """Stand in for ``_codecs.encode``, with which Python 3 writes bytes into an old pickle."""
    if codec not in ("latin1", b"latin1"):
        raise pickle.UnpicklingError(f"it encodes something as {codec!r}")
    return text.encode("latin1")


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}


class _Reader(pickle.Unpickler):
    """Makes dicts, lists, numbers, bytes and stand-ins out of a pickle, and calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name; every other name is refused."""
        stand_in = _STAND_INS.get((module, name))
        if stand_in is None:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, not in CIFAR-10")
        return stand_in


def read_batch(data: bytes) -> tuple[Bytes, Bytes]:
    """Read one batch: its images, [N, 3, 32, 32], and their labels.

    Raises:
        ValueError: it is no such batch.
    """
    try:
        batch = _Reader(io.BytesIO(data), encoding="bytes").load()
    except Exception as error:  # noqa: BLE001 (a damaged pickle can raise anything)
        raise ValueError(str(error) or type(error).__name__) from None
    if not isinstance(batch, dict):
        raise ValueError("it holds no dict")  # noqa: TRY004 (all are ValueErrors)
    named = {key.decode() if isinstance(key, bytes) else key: batch[key] for key in batch}
    pixels, labels = named.get("data"), named.get("labels")
    if not isinstance(pixels, _Array) or not isinstance(labels, list):
        raise ValueError("it has no 'data' and 'labels'")  # noqa: TRY004
    try:
        _, shape, dtype, fortran, raw = pixels.state
        images = np.frombuffer(raw, np.uint8).reshape(shape)
        kinds = np.array(labels, np.int64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"its arrays are damaged: {error}") from None
    if fortran or getattr(dtype, "name", "") != "u1" or images.shape != (len(labels), _PIXELS):
        raise ValueError(f"its data are not {len(labels)} rows of {_PIXELS} bytes")
    if kinds.size == 0 or kinds.min() < 0 or kinds.max() > 9:
        raise ValueError("its labels are not from 0 to 9")
    return images.reshape(-1, 3, 32, 32), kinds.astype(np.uint8)


def read_official(path: Path) -> dict[str, Bytes]:
    """Read the whole archive into the four arrays of the data set.

    Raises:
        ProblemError: it is damaged, or another archive.
    """
    found: dict[str, tuple[Bytes, Bytes]] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = Path(member.name).name
                if name not in (*TRAIN, *TEST) or not member.isfile():
                    continue
                stream = archive.extractfile(member)
                try:
                    found[name] = read_batch(stream.read(_LARGEST) if stream else b"")
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
    except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError) as error:
        raise ProblemError(f"{path} is damaged or no cifar-10-python.tar.gz: {error}") from None
    missing = [name for name in (*TRAIN, *TEST) if name not in found]
    if missing:
        raise ProblemError(f"{path} is no cifar-10-python.tar.gz: it has no {missing[0]}")
    return {
        "train_images": np.concatenate([found[name][0] for name in TRAIN]),
        "train_labels": np.concatenate([found[name][1] for name in TRAIN]),
        "test_images": np.concatenate([found[name][0] for name in TEST]),
        "test_labels": np.concatenate([found[name][1] for name in TEST]),
    }
