"""Errors a user can do something about: one line on stderr, a non-zero exit, no traceback."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


class ProblemError(Exception):
    """Something the user gave is wrong; the message says what."""


def run(main: Callable[[], None]) -> None:
    """Run a script's main function; what a user can put right becomes one line, and status 1."""
    try:
        main()
    except (ProblemError, OSError) as problem:
        sys.exit(f"{Path(sys.argv[0]).name}: error: {' '.join(str(problem).split())}")
    except KeyboardInterrupt:
        sys.exit(f"{Path(sys.argv[0]).name}: interrupted")


def boolean(text: str) -> bool:
    """Read True or False as the test chain writes them.

    Raises:
        argparse.ArgumentTypeError: it is neither.
    """
    if text.lower() in {"true", "1", "yes"}:
        return True
    if text.lower() in {"false", "0", "no"}:
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither True nor False")


def at_least(smallest: int) -> Callable[[str], int]:
    """Make an argparse type for whole numbers from ``smallest`` on."""

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < smallest:
            raise argparse.ArgumentTypeError(f"{value} is less than {smallest}")
        return value

    return number
