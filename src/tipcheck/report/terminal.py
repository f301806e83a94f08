"""The terminal as all reports see it: its width in a pipe, the colour of a verdict, number forms.

What looks different on screen than in a pipe is decided here, once.
"""

from __future__ import annotations

import math
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.theme import Theme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIPE_WIDTH = 140
"""Columns where there is no terminal to ask: tables in a log file must not be cut."""

_THEME = Theme(
    {
        "good": "green",
        "bad": "bold red",
        "warn": "yellow",
        "quiet": "dim",
        "name": "bold",
        # Numbers are formatted on purpose; rich's guesses would only add noise.
        "repr.number": "none",
    }
)

STYLES = {
    "PASS": "good",
    "FAIL": "bad",
    "SUSPECT": "warn",
    "CRASH": "bad",
    "UNSUPPORTED": "quiet",
}


def terminal(*, stderr: bool = False) -> Console:
    """Return the console to print on."""
    console = Console(stderr=stderr, theme=_THEME, highlight=False, soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = max(console.width, PIPE_WIDTH)
    return console


def short(value: float | None, digits: int = 3) -> str:
    """Return a measure in few characters; ``-`` where it is not defined."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "inf" if value > 0 else str(value)
    return f"{value:.{digits}g}"


def printable(text: str) -> str:
    """Return text from a file with its control characters written out, so that they do nothing."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def decibels(value: float | None) -> str:
    """Return a ratio in dB; ``equal`` for tensors without any difference."""
    if value is None:
        return "-"
    return "equal" if value == math.inf else f"{value + 0.0:.1f}".replace("-0.0", "0.0")


@contextmanager
def waiting(first: str) -> Iterator[Callable[[str], None]]:
    """Show on stderr what is going on while something takes its time; yield how to change it."""
    console = terminal(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(first) as status:
        yield status.update
