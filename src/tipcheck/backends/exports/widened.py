"""An exported program rewritten to float64: the referee that says which side is nearer the truth.

Only types change: every float32 tensor, attribute and parameter becomes float64, the graph stays
what it is. Nothing else about the program is touched, so what runs is the same mathematics with
noise a billion times smaller. Where an op has no float64 kernel, Paddle says so, and there is no
referee.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from tipcheck.backends.exports import protobuf
from tipcheck.backends.exports.parameters import tensors_of

if TYPE_CHECKING:
    from pathlib import Path

_FLOAT32, _FLOAT64 = 5, 6
_BLOCK = 1 << 22
_DTYPE_ATTRIBUTES = ("dtype", "in_dtype", "out_dtype")


def widen(model: Path, folder: Path) -> Path:
    """Write a float64 copy of an exported model; return its program file."""
    target = folder / f"float64{model.suffix}"
    data = model.read_bytes()
    target.write_bytes(_widen_json(data) if model.suffix == ".json" else _widen_protobuf(data))
    with (
        model.with_suffix(".pdiparams").open("rb") as source,
        target.with_suffix(".pdiparams").open("wb") as sink,
    ):
        _widen_parameters(source, sink)
    return target


def _widen_json(data: bytes) -> bytes:
    text = data.replace(b'"0.t_f32"', b'"0.t_f64"')
    for space in (b"", b" "):
        old = b'"#":%s"1.a_dtype",%s"D":%s"float32"' % (space, space, space)
        text = text.replace(old, old.replace(b"float32", b"float64"))
    return text


def _widen_parameters(source: BinaryIO, sink: BinaryIO) -> None:
    for tensor in tensors_of(source):
        wide = tensor.dtype == _FLOAT32
        described = tensor.description
        if wide:
            described = protobuf.rewritten(
                described, lambda number, value: _FLOAT64 if number == 1 else value
            )
        sink.write(tensor.before + struct.pack("<i", len(described)) + described)
        left = tensor.size
        while left:
            block = source.read(min(left, _BLOCK))
            if not block:
                raise EOFError("the parameter file ends too early")
            left -= len(block)
            sink.write(np.frombuffer(block, "<f4").astype("<f8").tobytes() if wide else block)


# The older format ---------------------------------------------------------------------------------


def _widen_protobuf(data: bytes) -> bytes:
    return _nested(data, 1, _widen_block)


def _nested(message: bytes, field: int, change: object) -> bytes:
    """Return a message with the nested messages of one field changed."""

    def each(number: int, value: int | bytes) -> int | bytes:
        if number == field and isinstance(value, bytes):
            changed: bytes = change(value)  # type: ignore[operator]
            return changed
        return value

    return protobuf.rewritten(message, each)


def _widen_block(block: bytes) -> bytes:
    return _nested(_nested(block, 3, _widen_var), 4, _widen_op)


def _widen_var(var: bytes) -> bytes:
    def dtype(tensor: bytes) -> bytes:
        return protobuf.rewritten(
            tensor,
            lambda number, value: _FLOAT64 if number == 1 and value == _FLOAT32 else value,
        )

    return _nested(var, 2, lambda kind: _nested(kind, 3, lambda held: _nested(held, 1, dtype)))


def _widen_op(op: bytes) -> bytes:
    def attribute(item: bytes) -> bytes:
        if protobuf.text(item, 1) not in _DTYPE_ATTRIBUTES:
            return item
        return protobuf.rewritten(
            item, lambda number, value: _FLOAT64 if number == 3 and value == _FLOAT32 else value
        )

    return _nested(op, 4, attribute)
