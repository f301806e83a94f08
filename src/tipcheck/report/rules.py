"""What ``tipcheck compare --explain`` prints: the gates and the table of default tolerances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from tipcheck.compare.tolerance import DEFAULTS
from tipcheck.report.terminal import terminal

if TYPE_CHECKING:
    from rich.console import Console

_GATES = (
    ("structure", "the same outputs by name, the same shapes and dtypes, something to compare"),
    ("nan and inf", "NaN, +inf and -inf at the same places; NaN only with --equal-nan"),
    ("exact", "integers, booleans, text and dates are equal"),
    ("numbers", "|actual - expected| <= atol + rtol * |expected| for every element"),
)


def show_rules(console: Console | None = None) -> None:
    """Print how a verdict comes about."""
    console = console or terminal()
    gates = Table(
        box=SIMPLE_HEAD, pad_edge=False, title="gates, in this order", title_justify="left"
    )
    gates.add_column("gate", style="name")
    gates.add_column("an output passes when")
    for gate, rule in _GATES:
        gates.add_row(gate, rule)
    console.print(gates)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="default tolerances", title_justify="left")
    table.add_column("dtype", style="name")
    table.add_column("rtol", justify="right")
    table.add_column("atol", justify="right")
    table.add_column("why")
    for row in DEFAULTS:
        table.add_row(row.dtype, f"{row.rtol:g}", f"{row.atol:g}", row.why)
    console.print(table)
    console.print("--rtol and --atol replace them, for floating outputs of every dtype.")
