"""How a run's outcomes, times and sizes are written, the same in every view."""

from __future__ import annotations

from dataclasses import dataclass

from tipcheck.step_runner.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Look:
    """How one outcome looks: a mark for tables, and a style of the terminal's theme."""

    mark: str
    style: str


LOOKS: dict[Outcome, Look] = {
    Outcome.PASSED: Look("✓", "good"),
    Outcome.SKIPPED: Look("↷", "good"),
    Outcome.FAILED: Look("✗", "bad"),
    Outcome.CRASHED: Look("✗", "bad"),
    Outcome.TIMED_OUT: Look("✗", "bad"),
    Outcome.HOLLOW: Look("○", "warn"),
    Outcome.BLOCKED: Look("·", "quiet"),
}

ORDER = (
    Outcome.FAILED,
    Outcome.CRASHED,
    Outcome.TIMED_OUT,
    Outcome.HOLLOW,
    Outcome.BLOCKED,
    Outcome.PASSED,
    Outcome.SKIPPED,
)
"""The worst first: what a reader has to look at."""


def duration(seconds: float) -> str:
    """Return a time in at most three units' worth of characters."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} m"


def size(number: int | None) -> str:
    """Return a number of bytes in three digits; an empty text when it is not known."""
    if number is None:
        return ""
    value = float(number)
    for unit in ("B", "kB", "MB"):
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} GB"


def steps(number: int) -> str:
    """Return a number of steps in words."""
    return "1 step" if number == 1 else f"{number:,} steps"


def configs(number: int) -> str:
    """Return a number of configs in words."""
    return "1 config" if number == 1 else f"{number:,} configs"
