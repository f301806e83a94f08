"""Reads ``.npz`` files a block at a time, and refuses everything in them that is no plain array.

``numpy.load`` would hold whole arrays in memory and can be asked to unpickle. Here only the headers
of the arrays are parsed; their elements stream out of the zip archive, which checks its own
checksums on the way, so that a damaged file is noticed and a file larger than memory is no problem.
"""

from __future__ import annotations

import io
import math
import stat
import warnings
import zipfile
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tipcheck.compare.tensors import Array, Order, Tensor

_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError)
_HEADER_LIMIT = 1 << 16
"""Bytes that a header may take. What a damaged one claims can be more than there is memory."""
_AXES_LIMIT = 64
_AGAIN = "save it again with numpy.savez(PATH, name=array, ...)"


class MemberTensor:
    """One array inside an ``.npz`` file."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> None:
        self._archive = archive
        self._info = info
        self._where = where
        with self._opened() as stream:
            header = io.BytesIO(stream.read(_HEADER_LIMIT))
            self.shape, self.order, self.dtype = self._read_header(header)
            self._data_starts = header.tell()
        needed = self._data_starts + math.prod(self.shape) * self.dtype.itemsize
        if needed != info.file_size:
            raise UsageError(
                f"damaged: its header promises {needed} bytes, the file holds {info.file_size}",
                where=where,
                hint=_AGAIN,
            )

    def blocks(self, size: int) -> Iterator[Array]:
        """Yield the elements as they come out of the archive."""
        left = math.prod(self.shape)
        with self._opened() as stream:
            stream.read(self._data_starts)
            while left:
                count = min(size, left)
                data = stream.read(count * self.dtype.itemsize)
                if len(data) != count * self.dtype.itemsize:
                    raise EOFError("ends too early")
                yield np.frombuffer(data, self.dtype)
                left -= count
            stream.read(1)  # the end of the stream is where the checksum is compared

    def whole(self) -> Array:
        """Return the array, in memory."""
        flat = np.empty(math.prod(self.shape), self.dtype)
        start = 0
        for block in self.blocks(1 << 20):
            flat[start : start + block.size] = block
            start += block.size
        return flat.reshape(self.shape, order=self.order)

    def _read_header(self, stream: IO[bytes]) -> tuple[tuple[int, ...], Order, np.dtype[Any]]:
        version = npy.read_magic(stream)  # type: ignore[no-untyped-call]
        if version not in ((1, 0), (2, 0)):
            told = f"is an array of format {version[0]}.{version[1]}, which no plain array needs"
            raise UsageError(told, where=self._where, hint=_AGAIN)
        shape, fortran, dtype = self._parse_header(stream, version)
        if len(shape) > _AXES_LIMIT:
            told = f"damaged: it has {len(shape)} axes"
            raise UsageError(told, where=self._where, hint=_AGAIN)
        if any(type(length) is not int or not 0 <= length < 1 << 63 for length in shape):
            raise UsageError(f"damaged: its shape is {shape}", where=self._where, hint=_AGAIN)
        if dtype.hasobject:
            raise UsageError(
                "holds Python objects, which are never unpickled",
                where=self._where,
                hint="convert it to a numeric array before numpy.savez",
            )
        if dtype.fields or dtype.subdtype:
            raise UsageError(
                "is a structured array",
                where=self._where,
                hint="save each field as an array of its own",
            )
        return shape, "F" if fortran else "C", dtype

    def _parse_header(self, stream: IO[bytes], version: tuple[int, int]) -> Any:  # noqa: ANN401
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        try:
            with warnings.catch_warnings():  # about headers of Python 2, which are no problem
                warnings.simplefilter("ignore")
                return read(stream)  # type: ignore[no-untyped-call]
        except Exception as error:  # noqa: BLE001 - numpy lets through whatever its parsers raise
            told = f"damaged: its header cannot be read ({_short(error)})"
            raise UsageError(told, where=self._where, hint=_AGAIN) from None

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        try:
            with self._archive.open(self._info) as stream:
                yield stream
        except UsageError:
            raise
        except (*_BROKEN, RuntimeError, NotImplementedError) as error:
            told = f"cannot be read ({_short(error)})"
            raise UsageError(told, where=self._where, hint=_AGAIN) from None


def _short(error: Exception) -> str:
    """Return what a library says: cut, as some quote what they stumbled over; or its name."""
    return " ".join(str(error).split())[:80] or type(error).__name__


@contextmanager
def open_archive(path: Path) -> Iterator[dict[str, Tensor]]:
    """Open an ``.npz`` file and give its arrays by name; they can be walked until it is closed.

    Raises:
        UsageError: it is no ``.npz`` file of plain arrays, or is damaged.
    """
    with _open_zip(path) as archive:
        tensors: dict[str, Tensor] = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name == info.filename:
                raise UsageError(f"holds {name!r}, which is no array", where=str(path), hint=_AGAIN)
            if name in tensors:
                raise UsageError(f"holds two arrays {name!r}", where=str(path), hint=_AGAIN)
            tensors[name] = MemberTensor(archive, info, f"{path}: array {name!r}")
        yield tensors


def _open_zip(path: Path) -> zipfile.ZipFile:
    where = str(path)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            hint = "name a file inside it"
            raise UsageError("is a directory, not an .npz file", where=where, hint=hint)
        if not stat.S_ISREG(mode):
            hint = "write the outputs to a file first"
            raise UsageError("is a device or a pipe, not an .npz file", where=where, hint=hint)
        with path.open("rb") as file:
            start = file.read(8)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        denied = isinstance(error, PermissionError)
        hint = "check its permissions" if denied else "check the path"
        raise UsageError(
            getattr(error, "strerror", None) or str(error), where=where, hint=hint
        ) from None
    if not start:
        raise UsageError("is empty", where=where, hint=_AGAIN)
    if start.startswith(b"\x93NUMPY"):
        raise UsageError(
            "is a single .npy array",
            where=where,
            hint="save outputs by name with numpy.savez(PATH, name=array)",
        )
    try:
        return zipfile.ZipFile(path)
    except _BROKEN as error:
        kind = "is damaged" if start.startswith(b"PK") else "is not an .npz file"
        raise UsageError(f"{kind} ({error})", where=where, hint=_AGAIN) from None
