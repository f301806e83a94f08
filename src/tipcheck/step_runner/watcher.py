"""What an engine's run tells whoever looks on, so that the engine room knows of no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tipcheck.step_runner.task import Task

if TYPE_CHECKING:
    from tipcheck.step_runner.outcome import StepResult


@dataclass(frozen=True, slots=True)
class Beginning:
    """What is known when a run begins.

    Attributes:
        run: its number in the ledger.
        tasks: all its steps.
        jobs: how many may run at a time.
        continues_since: when the unfinished run began that this one goes on with, or None.
    """

    run: int
    tasks: Sequence[Task]
    jobs: int
    continues_since: float | None


class Watcher(Protocol):
    """Is told what happens in a run, in the order in which it happens."""

    def began(self, beginning: Beginning) -> None:
        """The run begins."""

    def started(self, task: Task) -> None:
        """A step was started."""

    def skipped(self, task: Task, result: StepResult) -> None:
        """A step passed earlier and is believed."""

    def runs_again(self, task: Task, why: str) -> None:
        """A step passed earlier, but has to run again."""

    def finished(self, task: Task, result: StepResult) -> None:
        """A step ended, or will never start."""

    def tick(self) -> None:
        """Some time has passed."""

    def ended(self, results: Sequence[StepResult | None]) -> None:
        """The run is over."""


class Silent:
    """A watcher that looks away."""

    def began(self, beginning: Beginning) -> None:
        """See ``Watcher``."""

    def started(self, task: Task) -> None:
        """See ``Watcher``."""

    def skipped(self, task: Task, result: StepResult) -> None:
        """See ``Watcher``."""

    def runs_again(self, task: Task, why: str) -> None:
        """See ``Watcher``."""

    def finished(self, task: Task, result: StepResult) -> None:
        """See ``Watcher``."""

    def tick(self) -> None:
        """See ``Watcher``."""

    def ended(self, results: Sequence[StepResult | None]) -> None:
        """See ``Watcher``."""
