"""What ``tipcheck verify --explain`` prints: the stages in order, and the noise budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from tipcheck.backends.catalogue import STAGES
from tipcheck.backends.stages import stage_kinds
from tipcheck.compare.budget import BUDGETS
from tipcheck.report.terminal import terminal
from tipcheck.stage_ladder.factors import NOISE_FACTOR, WORST_FACTOR

if TYPE_CHECKING:
    from rich.console import Console


def show_ladder_rules(console: Console | None = None) -> None:
    """Print how a ladder is climbed and judged."""
    console = console or terminal()
    kinds = stage_kinds()
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="stages", title_justify="left")
    table.add_column("stage", style="name")
    table.add_column("precision")
    table.add_column("what it is, or what it changes")
    for way in STAGES:
        table.add_row(way.name, kinds[way.name].precision, way.what)
    console.print(table)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="noise budgets", title_justify="left")
    table.add_column("precision", style="name")
    for title in ("SUSPECT below dB", "FAIL below dB", "worst ÷ rms"):
        table.add_column(title, justify="right")
    table.add_column("why")
    for row in BUDGETS:
        table.add_row(
            row.precision, f"{row.warn_db:g}", f"{row.fail_db:g}", f"{row.worst:g}", row.why
        )
    console.print(table)
    console.print(
        f"Full precision also has to stay within {NOISE_FACTOR:g} noise floors of the model itself "
        f"(its worst element within {WORST_FACTOR:g}), which the float64 referee measures.\n"
        "--budget replaces a row; --rtol and --atol replace the tolerance of full precision."
    )
