"""A run as plain lines, for pipes and CI logs: one line for each thing that happens.

Lines go out at once. While nothing ends for a minute, a line says what is running, so that a CI
system that kills silent jobs stays calm. A reader that goes away (``| head``) does not end the run.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

from tipcheck.report.run_words import configs, duration, size, steps
from tipcheck.step_runner.outcome import Outcome
from tipcheck.step_runner.reason import last_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from tipcheck.step_runner.outcome import StepResult
    from tipcheck.step_runner.task import Task
    from tipcheck.step_runner.watcher import Beginning

_QUIET = 60.0


class PlainLines:
    """Watches a run and writes a line for each event."""

    def __init__(self, stream: TextIO, quiet: float = _QUIET) -> None:
        """Write to a stream.

        Args:
            stream: where lines go.
            quiet: seconds without a line after which one says what is running.
        """
        self._stream: TextIO | None = stream
        self._quiet = quiet
        self._last = time.monotonic()
        self._running: dict[int, tuple[Task, float]] = {}
        self._ended = 0
        self._total = 0
        self._believed = 0
        self._several = False

    def began(self, beginning: Beginning) -> None:
        """Say what is going to run."""
        self._total = len(beginning.tasks)
        plans = {task.where[0] for task in beginning.tasks}
        self._several = len(plans) > 1
        verb = "begins"
        if beginning.continues_since is not None:
            clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(beginning.continues_since))
            verb = f"goes on (it began on {clock} and did not finish)"
        self._say(
            f"run {beginning.run} {verb}: {configs(len(plans))}, {steps(self._total)}, "
            f"{beginning.jobs} at a time"
        )

    def started(self, task: Task) -> None:
        """Say that a step was started."""
        self._running[task.number] = (task, time.monotonic())
        self._say(f"{self._place()} start      {self._name(task)}")

    def skipped(self, task: Task, result: StepResult) -> None:
        """Say that a step's earlier pass counts."""
        self._ended += 1
        word = "skipped" if result.outcome is Outcome.SKIPPED else "passed"
        why = result.reason or "before the run was interrupted"
        self._say(f"{self._place()} {word:9}  {self._name(task)}  {why}")

    def runs_again(self, task: Task, why: str) -> None:
        """Say why an earlier pass does not count."""
        self._say(f"{self._place()} again      {self._name(task)}  {why}")

    def finished(self, task: Task, result: StepResult) -> None:
        """Say how a step ended."""
        self._running.pop(task.number, None)
        self._ended += 1
        good = result.outcome.is_good
        word = result.outcome.value if good else result.outcome.value.upper()
        facts = [] if result.outcome is Outcome.BLOCKED else [duration(result.seconds)]
        facts += [text for text in (size(result.peak_memory_bytes),) if text]
        facts += [text for text in (result.reason, result.note) if text]
        if not good and result.outcome is not Outcome.BLOCKED:
            facts.append(f"log: {result.log}")
        self._say(f"{self._place()} {word:9}  {self._name(task)}  {'  '.join(facts)}".rstrip())

    def tick(self) -> None:
        """Say what is running, if nothing was said for long."""
        if self._running and time.monotonic() - self._last > self._quiet:
            for task, since in list(self._running.values()):
                line = last_line(task.log)
                told = f"  {line}" if line else ""
                age = duration(time.monotonic() - since)
                self._say(f"{self._place()} running    {self._name(task)}  {age}{told}")

    def ended(self, results: Sequence[StepResult | None]) -> None:
        """Leave the summary to the table that follows."""

    def _place(self) -> str:
        width = len(str(self._total))
        return f"[{self._ended:{width}}/{self._total}]"

    def _name(self, task: Task) -> str:
        name = f"{task.step.stage}  {task.step.id}"
        return f"{task.plan.model_name}  {name}" if self._several else name

    def _say(self, line: str) -> None:
        self._last = time.monotonic()
        if self._stream is None:
            return
        encoding = self._stream.encoding or "utf-8"
        printable = line.encode(encoding, "backslashreplace").decode(encoding)
        try:
            self._stream.write(printable + "\n")
            self._stream.flush()
        except BrokenPipeError:  # nobody listens any more; the run goes on
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            self._stream = None
