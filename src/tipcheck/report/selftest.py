"""The self-test on the terminal: how many faults of each kind and size were found."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tipcheck.report.terminal import terminal
from tipcheck.stage_ladder.selftest import SIZES, WANTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tipcheck.stage_ladder.selftest import FaultOutcome, SelftestResult

_MOST_SHOWN = 10


def show_selftest(result: SelftestResult, console: Console | None = None) -> None:
    """Print the rates, what was missed, and the verdict."""
    console = console or terminal()
    console.print(_table(result))
    for fault in [item for item in result.large if not item.found][:_MOST_SHOWN]:
        console.print(Text(f"missed: {_told(fault)}", "bad"))
    for fault in result.misplaced[:_MOST_SHOWN]:
        console.print(Text(f"blamed on {fault.blamed}: {_told(fault)}", "bad"))
    for alarm in result.alarms[:_MOST_SHOWN]:
        console.print(Text(f"alarm without a fault: {alarm}", "bad"))
    found = sum(item.found for item in result.large)
    word, style = ("PASS", "good") if result.good else ("FAIL", "bad")
    text = Text.assemble((word, style), f"  {found} of {len(result.large)} faults at 10 noise ")
    text.append(f"floors or more found ({result.rate:.1%}, wanted {WANTED:.0%}), ")
    text.append(f"{len(result.misplaced)} blamed on the wrong rung, ")
    text.append(f"{len(result.alarms)} alarms in {result.clean_runs} runs without a fault")
    console.print(text)
    console.print(Text(f"seed {result.seed}, {len(result.faults)} faults", "quiet"))


def _table(result: SelftestResult) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("fault", style="name")
    for size in SIZES:
        table.add_column(f"{size:g} x noise", justify="right")
    table.add_column("as it is", justify="right")
    bare = {item.kind for item in result.faults if item.size is None}
    kinds = {item.kind for item in result.faults}
    for kind in sorted(kinds, key=lambda kind: (kind in bare, kind)):
        table.add_row(kind, *_cells([item for item in result.faults if item.kind == kind]))
    table.add_section()
    table.add_row("all", *_cells(result.faults))
    return table


def _cells(faults: Sequence[FaultOutcome]) -> list[str]:
    groups = [[item for item in faults if item.size == size] for size in SIZES]
    groups.append([item for item in faults if item.size is None or item.size == math.inf])
    return [
        f"{sum(item.found for item in group)}/{len(group)}" if group else "" for group in groups
    ]


def _told(fault: FaultOutcome) -> str:
    size = "as it is" if fault.size in (None, math.inf) else f"{fault.size:g} x noise"
    place = f" in {fault.place}" if fault.place else ""
    stays = " and above" if fault.stays else " only"
    return f"{fault.kind}{place}, {size}, on {fault.stage}{stays}: {fault.status.value}"
