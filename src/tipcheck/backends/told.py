"""An error of a framework in one line: of its pages, the line that says what is wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST = 400
_WHAT = r"\w*Error: |\(\w+\) |-- (Conversion is failed|No conversion rule)"
"""How the lines begin that say what is wrong: Python's and Paddle's, and OpenVINO's."""
_PLACE = re.compile(r"(Exception from|Check .* failed at|FrontEnd API failed with) .*:\d*$")
"""Lines of OpenVINO that say where something was noticed, and not what."""


_ERROR = re.compile(
    r"\[ERROR\]|\w*Error: (?!`Process)|\(\w+\) |what\(\):|terminate called", re.IGNORECASE
)


def telling(lines: Sequence[str]) -> str:
    """Return the line of a dead process's last ones that says most about its death."""
    found = [line for line in lines if _ERROR.search(line)]
    return (found or lines)[-1].strip()[:_LONGEST]


def told(error: BaseException) -> str:
    """Return an error in one line; of Paddle's pages the line that says what is wrong."""
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else ""
        return f"it called sys.exit({code})"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    best = [line for line in lines if re.match(_WHAT, line)]
    text = (best or [line for line in lines if not _PLACE.match(line)] or lines or [""])[0]
    name = type(error).__name__
    return (text if text.startswith(name) else f"{name}: {text}".rstrip(": "))[:_LONGEST]
