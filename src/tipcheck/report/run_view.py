"""A run as one live view: what runs, how far, how long, and the last line of each log.

The view has a fixed height however many steps there are: one line of progress, one per running
step, as many as fit. Steps that go wrong are printed above it and stay; those that pass only count.
It is redrawn by the run's own ticks, a few times a second, never from a thread.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tipcheck.report.run_words import LOOKS, ORDER, configs, duration, steps
from tipcheck.step_runner.outcome import Outcome
from tipcheck.step_runner.reason import last_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, RenderableType

    from tipcheck.step_runner.outcome import StepResult
    from tipcheck.step_runner.task import Task
    from tipcheck.step_runner.watcher import Beginning

_REDRAW = 0.2
_PRINTED = 30
"""Steps that went wrong which are printed above the view; the table at the end has them all."""


class LiveView:
    """Watches a run and draws it."""

    def __init__(self, console: Console, redraw: float = _REDRAW) -> None:
        """Draw on a terminal.

        Args:
            console: the terminal.
            redraw: least seconds between two drawings.
        """
        self._console = console
        self._redraw = redraw
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._running: dict[int, tuple[Task, float]] = {}
        self._spinner = Spinner("dots", style="name")
        self._counts: dict[Outcome, int] = {}
        self._total = 0
        self._again = 0
        self._printed = 0
        self._several = False
        self._begin = self._drawn = time.monotonic()

    def began(self, beginning: Beginning) -> None:
        """Say what is going to run, and start drawing."""
        self._total = len(beginning.tasks)
        plans = {task.where[0] for task in beginning.tasks}
        self._several = len(plans) > 1
        head = Text.assemble((f"run {beginning.run}", "name"), "  ")
        head.append(f"{configs(len(plans))}, {steps(self._total)}, {beginning.jobs} at a time")
        if beginning.continues_since is not None:
            clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(beginning.continues_since))
            head.append(f"; goes on with the run of {clock}, which did not finish", "warn")
        self._console.print(head)
        self._live.start()
        self._draw()

    def started(self, task: Task) -> None:
        """Show a step among the running ones."""
        self._running[task.number] = (task, time.monotonic())

    def skipped(self, task: Task, result: StepResult) -> None:  # noqa: ARG002 - a Watcher
        """Count a step whose earlier pass is believed."""
        self._counts[result.outcome] = self._counts.get(result.outcome, 0) + 1

    def runs_again(self, task: Task, why: str) -> None:
        """Print why an earlier pass does not count."""
        self._again += 1
        if self._again <= _PRINTED:
            self._print(
                Text.assemble(("↻ ", "warn"), self._name(task), ("  again: " + why, "quiet"))
            )

    def finished(self, task: Task, result: StepResult) -> None:
        """Count a step; print it above the view if it went wrong."""
        self._running.pop(task.number, None)
        self._counts[result.outcome] = self._counts.get(result.outcome, 0) + 1
        if result.outcome in (Outcome.PASSED, Outcome.BLOCKED):
            return
        self._printed += 1
        if self._printed <= _PRINTED:
            look = LOOKS[result.outcome]
            line = Text.assemble((f"{look.mark} ", look.style), self._name(task))
            line.append(f"  {result.outcome.value}", look.style)
            line.append(f" after {duration(result.seconds)}: {result.reason}")
            self._print(line)

    def tick(self) -> None:
        """Draw again, if it is time."""
        if time.monotonic() - self._drawn >= self._redraw:
            self._draw()

    def ended(self, results: Sequence[StepResult | None]) -> None:  # noqa: ARG002 - likewise
        """Take the view away."""
        self._live.stop()

    def close(self) -> None:
        """Give the terminal back, whatever has happened."""
        self._live.stop()

    def picture(self) -> RenderableType:
        """Return what the view shows right now."""
        room = max(1, self._console.height - 4)
        shown = list(self._running.values())
        hidden = len(shown) - room
        if hidden > 0:
            shown = shown[: room - 1]
            hidden += 1
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(width=1)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column(justify="right", no_wrap=True, min_width=9)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1, style="quiet")
        now = time.monotonic()
        for task, since in shown:
            table.add_row(
                self._spinner.render(self._console.get_time()),
                self._name(task),
                duration(now - since),
                Text(last_line(task.log)),
            )
        parts: list[RenderableType] = [self._progress(now)]
        if shown:
            parts.append(table)
        if hidden > 0:
            parts.append(Text(f"  and {hidden:,} more running", "quiet"))
        return Group(*parts)

    def _progress(self, now: float) -> RenderableType:
        done = sum(self._counts.values())
        line = Table.grid(padding=(0, 2, 0, 0))
        bad = any(self._counts.get(outcome) for outcome in ORDER[:3])
        bar = ProgressBar(
            total=max(1, self._total),
            completed=done,
            width=max(10, min(40, self._console.width // 4)),
            complete_style="bad" if bad else "good",
            finished_style="bad" if bad else "good",
        )
        counts = Text("  ").join(
            Text(f"{self._counts[outcome]:,} {outcome.value}", LOOKS[outcome].style)
            for outcome in ORDER
            if self._counts.get(outcome)
        )
        line.add_row(bar, f"{done:,}/{self._total:,}", duration(now - self._begin), counts)
        return line

    def _name(self, task: Task) -> Text:
        name = Text()
        if self._several:
            name.append(f"{task.plan.model_name} ", "quiet")
        return name.append(f"{task.step.stage} ", "name").append(task.step.id)

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=False, overflow="ellipsis", no_wrap=True)

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        self._live.update(self.picture(), refresh=True)
