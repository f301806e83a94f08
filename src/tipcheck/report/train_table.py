"""Two trainings compared: a line for each step, and where they part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tipcheck.report.terminal import STYLES, printable, short

if TYPE_CHECKING:
    from rich.console import Console

    from tipcheck.stage_ladder.training import TrainResult, TrainStep


def show_training(result: TrainResult, console: Console) -> None:
    """Print the verdict on a training."""
    if result.steps:
        table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)
        for name in ("step", "dygraph loss", "to_static loss", "compared", "tolerance used"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
        table.add_column("parts first in", overflow="fold")
        for step in result.steps:
            table.add_row(*_cells(step))
        console.print(table)
        console.print()
    line = Text(result.status.value, STYLES[result.status.value])
    console.print(line.append("  " + printable(result.sentence), "none"), soft_wrap=True)


def _cells(step: TrainStep) -> tuple[Text | str, ...]:
    first = step.parted[0].name if step.parted else ""
    others = len(step.parted) - 1
    return (
        str(step.step),
        f"{step.loss[0]:.7g}",
        f"{step.loss[1]:.7g}",
        f"{step.compared} tensors",
        short(step.closest),
        Text(step.status.value, STYLES[step.status.value]),
        printable(first + (f" and {others} more" if others > 0 else "")),
    )
