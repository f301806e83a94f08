"""The wire format of protobuf, as far as the older export format of Paddle needs it.

A ``.pdmodel`` file is one protobuf message, and the header of every tensor in a ``.pdiparams`` file
is another. Reading them needs field numbers only; Paddle itself would have to be imported, and an
older file may need another mode of it than the process is in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Value = int | bytes

_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5


class NotProtobufError(ValueError):
    """The bytes are no protobuf message."""


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Yield every field: its number, and an integer or the bytes of what is nested in it."""
    for number, _, value, _, _ in _walk(message):
        yield number, value


def children(message: bytes, number: int) -> list[bytes]:
    """Return the nested messages, or texts, of one field."""
    return [
        value for found, value in fields(message) if found == number and isinstance(value, bytes)
    ]


def integers(message: bytes, number: int) -> list[int]:
    """Return the integers of one field, signed, whether packed or not."""
    found: list[int] = []
    for at, value in fields(message):
        if at != number:
            continue
        if isinstance(value, int):
            found.append(value)
        else:
            place = 0
            while place < len(value):
                item, place = _varint(value, place)
                found.append(item)
    return [item - (1 << 64) if item >> 63 else item for item in found]


def text(message: bytes, number: int) -> str:
    """Return the last text of one field, empty without one."""
    found = children(message, number)
    return found[-1].decode("utf-8", "replace") if found else ""


def rewritten(message: bytes, change: Callable[[int, Value], Value]) -> bytes:
    """Return a message with every field passed through ``change(number, value)``."""
    pieces = bytearray()
    for number, wire, value, start, end in _walk(message):
        new = change(number, value)
        if new is value or new == value:
            pieces += message[start:end]
        elif isinstance(new, int):
            pieces += varint(number << 3) + varint(new)
        else:
            pieces += varint(number << 3 | wire) + varint(len(new)) + new
    return bytes(pieces)


def varint(number: int) -> bytes:
    """Return the encoding of an integer."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _walk(message: bytes) -> Iterator[tuple[int, int, Value, int, int]]:
    place = 0
    while place < len(message):
        start = place
        key, place = _varint(message, place)
        wire = key & 7
        value: Value
        if wire == _VARINT:
            value, place = _varint(message, place)
        elif wire in (_EIGHT, _FOUR):
            size = 8 if wire == _EIGHT else 4
            value, place = message[place : place + size], place + size
        elif wire == _LENGTH:
            size, place = _varint(message, place)
            value, place = message[place : place + size], place + size
        else:
            raise NotProtobufError(f"wire type {wire} at byte {start}")
        if place > len(message):
            raise NotProtobufError(f"a field at byte {start} ends beyond the end")
        yield key >> 3, wire, value, start, place


def _varint(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise NotProtobufError(f"no number at byte {place}")
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
        shift += 7
