"""Pictures and data sets made by hand: whole ones, and ones that were cut off or damaged."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path


def png(seed: int = 0, size: int = 8) -> bytes:
    rows = b"".join(b"\0" + bytes((seed + x) % 256 for x in range(3 * size)) for _ in range(size))
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows, 0)),
        (b"IEND", b""),
    ]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def jpeg() -> bytes:
    frame = b"\xff\xc0\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00"
    scan = b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + b"\x12\x34"
    return b"\xff\xd8\xff\xff\x01" + frame + scan + b"\xff\xd9"


def bmp() -> bytes:
    return b"BM" + struct.pack("<I", 20) + bytes(14)


def gif() -> bytes:
    return b"GIF89a" + bytes(10) + b";\0"


def webp() -> bytes:
    return b"RIFF" + struct.pack("<I", 12) + b"WEBPVP8 " + bytes(4)


def put(root: Path, path: str, data: bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def class_folders(root: Path, *parts: str, classes: int = 5, each: int = 8) -> Path:
    """Write ``classes`` folders of ``each`` pictures, in every part."""
    for part in parts or ("",):
        for number in range(classes):
            for index in range(each):
                name = f"{part}/c{number}/{index}.png".lstrip("/")
                put(root, name, png(number * each + index))
    return root


def list_files(root: Path, *, separator: str = " ", count: int = 40) -> Path:
    """Write a data set as ImageNet has it."""
    for part in ("train", "val"):
        lines = []
        for number in range(count):
            path = f"{part}/n{number % 10}/{number}.png"
            put(root, path, png(number))
            lines.append(f"{path}{separator}{number % 10}")
        put(root, f"{part}_list.txt", "\n".join([*lines, ""]).encode())
    return root
