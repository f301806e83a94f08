"""Writing prepared data without touching what is there already.

Whoever decides by the times of files whether something changed is then right.
"""

from __future__ import annotations

from pathlib import Path


def write_new(path: Path, data: bytes) -> None:
    """Write a file unless it holds just that."""
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
