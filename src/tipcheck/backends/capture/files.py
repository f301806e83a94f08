"""What the files of a capture are called: known to the processes that write and to the tool."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "TIPCHECK_CAPTURE"
"""Variable that holds the settings of a capture as JSON."""
LOCK = "lock"
"""File that is locked for as long as answers may still come."""
ENDINGS = (".json", ".pdmodel", ".pdiparams")
"""Of the files that make an exported model."""
KEPT = "exported"
"""Folder, inside that of a capture, for copies of files that the command took away."""


def write_json(path: str, content: Mapping[str, Any]) -> None:
    """Write a file that is there whole or not at all."""
    partly = f"{path}.{os.getpid()}"
    with open(partly, "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.replace(partly, path)


def exported_files(prefix: str) -> list[str]:
    """Return the files of an export, those of its other methods too, which are there now."""
    folder, base = os.path.split(prefix)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [
        os.path.join(folder, name)
        for name in sorted(names)
        if name.startswith(f"{base}.") and name.endswith(ENDINGS)
    ]
