"""Errors a user can do something about, and the options that several scripts have."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path


class ProblemError(Exception):
    """Something the user gave is wrong; the message says what, and what to do."""


def run(main: Callable[[], None]) -> None:
    """Run a script: a problem ends it with one line and status 1, an interruption with 130."""
    script = Path(sys.argv[0]).name
    try:
        main()
    except (ProblemError, OSError) as problem:
        sys.exit(f"{script}: error: {' '.join(str(problem).split())}")
    except KeyboardInterrupt:
        print(f"{script}: error: interrupted", file=sys.stderr)
        sys.exit(130)


def count(text: str) -> int:
    """Read a whole number of at least 1, for argparse.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def seed(text: str) -> int:
    """Read a whole number of at least 0, for argparse.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2147483647")
    return int(text)


def positive(text: str) -> float:
    """Read a finite number above 0, for argparse.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def output_folder(path: Path) -> Path:
    """Make the folder that results go into.

    Raises:
        ProblemError: there is a file in its place.
    """
    if path.exists() and not path.is_dir():
        raise ProblemError(f"--output-dir {path} is a file, not a folder")
    path.mkdir(parents=True, exist_ok=True)
    return path
