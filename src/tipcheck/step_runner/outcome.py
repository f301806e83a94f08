"""How a step ended: the contract between ``step_runner`` and whoever reads a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class Outcome(str, Enum):
    """The end of one step. Only ``PASSED`` and ``SKIPPED`` let the steps that need it start."""

    PASSED = "passed"
    FAILED = "failed"
    BLOCKED = "blocked"
    """A step that it needs did not pass."""
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    """It died on a signal."""
    HOLLOW = "hollow"
    """It succeeded, but tested nothing of what it was for."""
    SKIPPED = "skipped"
    """Resumed: it passed in an earlier run and nothing it depends on has changed."""

    @property
    def is_good(self) -> bool:
        """Whether the steps that need this one may start."""
        return self in (Outcome.PASSED, Outcome.SKIPPED)


@dataclass(frozen=True, slots=True)
class StepResult:
    """What is known about one step that ended.

    Attributes:
        step_id: the step's id in its plan.
        outcome: how it ended.
        reason: why, in one line, when it is not ``passed``; taken from the log where possible.
        exit_code: of the process, or None when it never started or died on a signal.
        signal: name of the signal it died on, such as ``SIGSEGV``.
        seconds: wall time.
        peak_memory_bytes: of all its processes, or None where it could not be measured.
        log: path of its log file.
        note: what else is worth knowing, whatever the outcome: processes it left running, a log
            that was cut.
    """

    schema: ClassVar[str] = "tipcheck.step-result/1"

    step_id: str
    outcome: Outcome
    reason: str = ""
    exit_code: int | None = None
    signal: str | None = None
    seconds: float = 0.0
    peak_memory_bytes: int | None = None
    log: str = ""
    note: str = ""
