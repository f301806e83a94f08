"""Replaces the file patterns of a command by the files they match when its step starts.

Some configs name what an earlier step will have written by a pattern, ``output/*/latest``. There is
no shell to expand it, and it must not be expanded before that step has run.
"""

from __future__ import annotations

import glob
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tipcheck.config_plans import Step


def argv_now(step: Step, cwd: Path) -> tuple[str, ...]:
    """Return the command of a step as it is to be started now.

    A pattern becomes the sorted names of the files it matches, and stays as it is without any.
    Words that the plan does not call patterns are never touched.
    """
    words: list[str] = []
    for position, word in enumerate(step.argv):
        is_pattern = position in step.patterns
        found = sorted(glob.glob(word, root_dir=cwd)) if is_pattern else []  # noqa: PTH207 - keeps ./
        words += found or [word]
    return tuple(words)
