"""Why a step failed, in one line, from the end of its log.

A log of a failed training is thousands of lines of progress and, somewhere near the end, one that
says what went wrong: the last line of a traceback, or one that a C++ library printed as an error.
Frameworks print more after it (launchers, cleanup, stack frames), so the last line is only the last
resort.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_WINDOW = 64 * 1024
_LONGEST = 300
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
_EXCEPTION = re.compile(
    r"^\s*(?:\w+\.)*(?:[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Fault|NotFound|Timeout)|"
    r"FatalError|EnforceNotMet)(?::|$| \()"
)
_PROBLEM = re.compile(
    r"error|fatal|exception|failed|cannot|can't|no such file|not found|killed|aborted|"
    r"segmentation fault|core dumped|out of memory|no space left|permission denied|invalid",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"^\s*(?:tipcheck: |File \"|\[Hint|\d+ +\S+::|-{5,}$|LAUNCH INFO|INFO |=+$)|"
    r"warnings?\b|\b(?:0 errors?|error[_ ]rate)\b|error=0\b",
    re.IGNORECASE,
)


def tail_of(path: Path, size: int = _WINDOW) -> str:
    """Return the end of a text file, or an empty text when it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - size))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def clean_lines(text: str) -> list[str]:
    """Return the lines of a log that hold anything, without colours, bars and binary."""
    lines = re.split(r"[\r\n]+", _ANSI.sub("", text))
    readable = (_UNPRINTABLE.sub(" ", line).strip() for line in lines)
    return [line for line in readable if line]


def last_line(path: Path) -> str:
    """Return the last line of a log that is still written: what the step says right now."""
    lines = clean_lines(tail_of(path, 4096))
    return lines[-1][:_LONGEST] if lines else ""


def _is_binary(line: str) -> bool:
    """Whether a line holds more than a tenth of what is no character."""
    return 10 * line.count("\ufffd") > len(line)


def last_error(text: str) -> str:
    """Return the line of a log's end that says best what went wrong; empty when it has no lines."""
    said = [line for line in clean_lines(text) if not line.startswith("tipcheck: ")]
    lines = [line for line in said if not _is_binary(line)]
    for line in reversed(lines):
        if _EXCEPTION.match(line) and not line.startswith("KeyboardInterrupt"):
            return line[:_LONGEST]
    for line in reversed(lines):
        if _PROBLEM.search(line) and not _NOISE.search(line):
            return line[:_LONGEST]
    if 2 * len(lines) < len(said):  # a short piece of something else may look like a line
        return "its log ends with something that is no text"
    return lines[-1][:_LONGEST] if lines else ""
