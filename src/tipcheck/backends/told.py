"""An error of a framework in one line: of its pages, the line that says what is wrong."""

from __future__ import annotations

import re

_LONGEST = 400


def told(error: BaseException) -> str:
    """Return an error in one line; of Paddle's pages the line that says what is wrong."""
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else ""
        return f"it called sys.exit({code})"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    best = [line for line in lines if re.match(r"\w*Error: |\(\w+\) ", line)]
    text = (best or lines or [""])[0]
    name = type(error).__name__
    return (text if text.startswith(name) else f"{name}: {text}".rstrip(": "))[:_LONGEST]
