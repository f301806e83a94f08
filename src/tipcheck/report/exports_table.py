"""The exports of one command, verified: a line for each, and its rungs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tipcheck.compare.verdict import Status
from tipcheck.report.terminal import STYLES, decibels, printable, short

if TYPE_CHECKING:
    from rich.console import Console

    from tipcheck.stage_ladder.exports import ExportsReport, ExportVerdict
    from tipcheck.stage_ladder.rung import LadderResult


def show_exports(report: ExportsReport, console: Console) -> None:
    """Print what came of one command."""
    for one in report.exports:
        _show_one(one, console)
    style = "good" if report.good else "bad"
    console.print(Text(f"tipcheck: {printable(report.sentence)}", style), soft_wrap=True)


def _show_one(one: ExportVerdict, console: Console) -> None:
    line = Text("tipcheck: ").append(one.status.value, STYLES[one.status.value])
    line.append(f"  {printable(one.name)}  ", "name").append(printable(one.sentence))
    console.print(line, soft_wrap=True)
    for note in one.notes:
        console.print(Text(f"          note: {printable(note)}", "warn"), soft_wrap=True)
    for words in one.last_lines:
        console.print(Text(f"          > {printable(words)}", "quiet"), soft_wrap=True)
    if one.ladder is not None:
        console.print(ladder_table(one.ladder))
        if one.ladder.resolution is not None:
            fault = f"smallest fault it could have seen: {short(one.ladder.resolution)} of the rms"
            where = f"          {fault} of {one.ladder.resolution_where}"
            console.print(Text(where, "quiet"), soft_wrap=True)


def _distance(sqnr: float | None) -> str:
    if sqnr is None:
        return ""
    return "equal" if sqnr == math.inf else f"{decibels(sqnr)} dB"


def ladder_table(ladder: LadderResult) -> Table:
    """Return the rungs that were run, or were to be."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)
    table.add_column("          stage", style="name", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("against the layer", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    hidden = []
    for rung in ladder.rungs:
        if rung.status is Status.UNSUPPORTED:
            hidden.append(rung.stage)
            continue
        against = rung.bottom
        table.add_row(
            f"          {rung.stage}",
            Text(rung.status.value, STYLES[rung.status.value]),
            _distance(against.sqnr_db if against else None),
            printable(rung.reason),
        )
    if hidden:
        table.add_row(
            "          cannot run", Text("UNSUPPORTED", STYLES["UNSUPPORTED"]), "",
            Text(", ".join(hidden), "quiet"),
        )  # fmt: skip
    return table
