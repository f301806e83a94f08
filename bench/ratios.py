"""What a benchmark gives: rows of ratios, each with the limit it has to keep."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Row:
    """One ratio. ``limit`` reads like ``at most 6``; empty when there is none."""

    what: str
    ratio: float
    unit: str
    limit: str = ""

    @property
    def holds(self) -> bool:
        """Whether the ratio keeps its limit."""
        if not self.limit:
            return True
        kind, _, number = self.limit.rpartition(" ")
        return self.ratio <= float(number) if kind == "at most" else self.ratio >= float(number)


@dataclass(frozen=True)
class Table:
    """The rows of one benchmark, and how they came about."""

    how: str
    rows: tuple[Row, ...]


def markdown(table: Table) -> str:
    """Return a table as the docs show it."""
    lines = ["| what | measured | limit | |", "|---|---:|---:|---|"]
    for row in table.rows:
        mark = ("✓" if row.holds else "✗ missed") if row.limit else ""
        lines.append(f"| {row.what} | {row.ratio:.2f} {row.unit} | {row.limit} | {mark} |")
    return f"{table.how}\n\n" + "\n".join(lines)


def interleaved(
    work: Mapping[str, Callable[[], object]],
    rounds: int,
    of: Callable[[list[float]], float] = statistics.median,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Time several pieces of work in turn, so that a slow moment hits all of them alike.

    Returns the median time of each in seconds, or what else ``of`` makes of the times.
    """
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, run in work.items():
            start = clock()
            run()
            times[name].append(clock() - start)
    return {name: of(values) for name, values in times.items()}
