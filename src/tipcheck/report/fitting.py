"""Tables that fit the terminal: on a narrow one, columns go before the verdict does.

A table that is too wide would be squeezed until numbers end in dots, or the column with the verdict
is gone. Each view says which columns can be spared, least needed first; what was left out is told.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

_ENOUGH = 24
"""A column that may fold over several lines, or be cut, needs no more than this."""
_ANY = 10_000


def print_fitting(
    console: Console, table: Table, spare: Sequence[str], *, cut: Sequence[str] = ()
) -> None:
    """Print a table without those of its spare columns that there is no room for.

    Args:
        console: where to.
        table: what to print; columns may be taken out of it.
        spare: headers of columns that may be left out, least needed first.
        cut: headers of columns whose end may be cut off; columns that fold are known.
    """
    left_out = []
    for header in spare:
        if _needed(table, console, cut) <= console.width:
            break
        if any(column.header == header for column in table.columns):
            left_out.append(header)
        _take_out(table, header)
    console.print(table)
    if left_out:
        told = ", ".join(left_out)
        console.print(Text(f"no room in {console.width} columns for: {told}", "quiet"))


def _needed(table: Table, console: Console, cut: Sequence[str]) -> int:
    """Return how wide a table is in which nothing is cut that has to be whole."""
    giving = [
        column for column in table.columns if column.overflow == "fold" or column.header in cut
    ]
    for column in giving:
        column.max_width = _ENOUGH
    needed = console.measure(table, options=console.options.update(width=_ANY)).maximum
    for column in giving:
        column.max_width = None
    return needed


def _take_out(table: Table, header: str) -> None:
    kept = [column for column in table.columns if column.header != header]
    table.columns = [replace(column, _index=index) for index, column in enumerate(kept)]
