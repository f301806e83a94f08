"""Tells whether the bytes of a picture are whole, without an image library.

A small data set is made once and used for years; a file that was cut off while it was copied must
not get into it. The structure of a file is checked, not its pixels.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp")

_PNG = b"\x89PNG\r\n\x1a\n"
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a length
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def problem_of(data: bytes) -> str | None:
    """Return what is wrong with a picture, or None if nothing is seen to be."""
    if not data:
        return "is empty"
    for start, check in _CHECKS.items():
        if data.startswith(start):
            return check(data)
    return "is no JPEG, PNG, BMP, GIF or WebP picture"


def _jpeg(data: bytes) -> str | None:
    at, framed = 2, False
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return "has a damaged JPEG segment"
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _ALONE:
            at += 2
        elif marker == 0xDA:
            whole = framed and data.find(b"\xff\xd9", at) > 0
            return None if whole else "is cut off"
        else:
            framed = framed or marker in _FRAMES
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return "is cut off"


def _png(data: bytes) -> str | None:
    at = len(_PNG)
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        body = data[at + 4 : at + 8 + size]
        stored = data[at + 8 + size : at + 12 + size]
        if len(stored) < 4:
            return "is cut off"
        if zlib.crc32(body) != int.from_bytes(stored, "big"):
            return "has a damaged PNG chunk"
        if body.startswith(b"IEND"):
            return None
        at += 12 + size
    return "is cut off"


def _bmp(data: bytes) -> str | None:
    return None if 14 < int.from_bytes(data[2:6], "little") <= len(data) else "is cut off"


def _gif(data: bytes) -> str | None:
    return None if data.rstrip(b"\0").endswith(b";") else "is cut off"


def _webp(data: bytes) -> str | None:
    if data[8:12] != b"WEBP":
        return "is no WebP picture"
    return None if int.from_bytes(data[4:8], "little") + 8 <= len(data) else "is cut off"


_CHECKS: dict[bytes, Callable[[bytes], str | None]] = {
    b"\xff\xd8": _jpeg,
    _PNG: _png,
    b"BM": _bmp,
    b"GIF8": _gif,
    b"RIFF": _webp,
}
