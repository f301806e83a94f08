"""The parameter file of an export, tensor by tensor, without Paddle.

Paddle loads a file that was cut off without a word, and computes with whatever the memory held. So
the headers are walked before anything runs. The values are views into the mapped file: holding two
exports side by side costs nothing.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from tipcheck.backends.exports import protobuf
from tipcheck.backends.exports.program import PROTO_TYPES, read_program
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

_HEADER_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor of a file.

    Attributes:
        before: the bytes in front of its description.
        description: protobuf: its dtype (field 1) and dims (field 2).
        dtype: of Paddle's own numbering.
        shape: its axes.
        size: bytes of its elements, which follow.
    """

    before: bytes
    description: bytes
    dtype: int
    shape: tuple[int, ...]
    size: int


def tensors_of(source: BinaryIO) -> Iterator[Stored]:
    """Yield the tensors of an open file; whoever takes one reads or skips its elements.

    Raises:
        ValueError: the file is damaged or ends too early.
    """
    while True:
        before = source.read(12)
        if not before:
            return
        levels = struct.unpack("<Q", _whole(before, 12)[4:])[0]
        if levels > _HEADER_LIMIT:
            raise ValueError("it is damaged")
        for _ in range(levels):
            length = _whole(source.read(8), 8)
            count = struct.unpack("<Q", length)[0]
            before += length + _whole(source.read(min(count, _HEADER_LIMIT)), count)
        before += _whole(source.read(4), 4)
        length = struct.unpack("<i", _whole(source.read(4), 4))[0]
        if not 0 <= length <= _HEADER_LIMIT:
            raise ValueError("it is damaged")
        description = _whole(source.read(length), length)
        dtype = protobuf.integers(description, 1)[0]
        shape = tuple(protobuf.integers(description, 2))
        size = math.prod(shape) * kind_of(dtype).itemsize
        yield Stored(before, description, dtype, shape, size)


def kind_of(dtype: int) -> np.dtype[Any]:
    """Return the elements of one of Paddle's own numbers; bfloat16 is read as uint16."""
    name = PROTO_TYPES[dtype]
    return np.dtype(np.uint16 if name == "bfloat16" else name)


def check_parameters(path: Path) -> int:
    """Walk the headers of a parameter file; return how many tensors it holds.

    Raises:
        UsageError: it is missing, damaged or ends too early.
    """
    return len(_walk(path))


def check_export(model: Path, parameters: Path | None = None) -> None:
    """Refuse an exported model whose program or parameters are missing, damaged or of another one.

    A model without parameters has no such file. Paddle dies on a missing one with a stack of C++.

    Raises:
        UsageError: as above; it says which file and what to do.
    """
    program = read_program(model)
    path = parameters or model.with_suffix(".pdiparams")
    if not path.is_file():
        if not program.parameters and parameters is None:
            return
        raise UsageError(
            f"its parameters {path.name} are missing",
            where=str(model),
            hint="keep both files of an export in one folder, or name the parameters",
        )
    held = check_parameters(path)
    if held < program.parameters:
        raise UsageError(
            f"holds {held} tensors, {model.name} reads {program.parameters}",
            where=str(path),
            hint="the two files belong to different exports",
        )


def read_parameters(path: Path, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the parameters of an export by name; bfloat16 comes as uint16.

    Args:
        path: the ``.pdiparams`` file.
        names: the names of all parameters that were saved; the file has none, only their order.

    Raises:
        UsageError: as above, or it holds other parameters than the model has.
    """
    found = _walk(path)
    if len(found) != len(names):
        raise UsageError(
            f"holds {len(found)} parameters, the model has {len(names)}",
            where=str(path),
            hint="give the file that was exported together with the model",
        )
    whole = np.memmap(path, np.uint8, "r") if found else np.zeros(0, np.uint8)
    return {
        name: whole[start : start + tensor.size].view(kind_of(tensor.dtype)).reshape(tensor.shape)
        for name, (start, tensor) in zip(sorted(names), found, strict=True)
    }


def forget(parameters: Mapping[str, npt.NDArray[Any]]) -> None:
    """Give back the memory of what was read of parameters; it comes again when it is looked at."""
    first = next(iter(parameters.values()), None)
    mapped = getattr(first, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _walk(path: Path) -> list[tuple[int, Stored]]:
    """Return every tensor with the place of its elements in the file."""
    found: list[tuple[int, Stored]] = []
    told = ""
    try:
        with path.open("rb") as source:
            end = os.fstat(source.fileno()).st_size
            for tensor in tensors_of(source):
                start = source.tell()
                found.append((start, tensor))
                if not start <= start + tensor.size <= end:
                    break
                source.seek(start + tensor.size)
            whole = source.tell() == end
        if not whole:
            told = f"it ends in tensor {len(found)}"
    except (ValueError, KeyError, IndexError) as error:
        told = str(error)
    except OSError as error:
        raise UsageError(
            f"cannot be read ({error.strerror})",
            where=str(path),
            hint="name the parameters of the model, or export it again",
        ) from None
    if told:
        raise UsageError(
            f"is no whole parameter file ({told})",
            where=str(path),
            hint="copy or export it again; Paddle would load it and compute with rubbish",
        )
    return found


def _whole(data: bytes, length: int) -> bytes:
    if len(data) != length:
        raise ValueError("it ends too early")
    return data
