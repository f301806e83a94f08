"""Errors a user can do something about: one line on stderr, a non-zero exit, no traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


class ProblemError(Exception):
    """Something is missing or wrong; the message says what, and what to do."""


def run(main: Callable[[], None]) -> None:
    """Run a script's main function; what a user can put right becomes one line, and status 1."""
    name = Path(sys.argv[0]).name
    try:
        main()
    except (ProblemError, OSError) as problem:
        sys.exit(f"{name}: error: {' '.join(str(problem).split())}")
    except KeyboardInterrupt:
        sys.exit(f"{name}: interrupted")
