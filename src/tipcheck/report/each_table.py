"""All configs of a repo: how many of each verdict, and a line for each config that is not good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tipcheck.report.run_words import duration
from tipcheck.report.terminal import STYLES, printable

if TYPE_CHECKING:
    from rich.console import Console

    from tipcheck.stage_ladder.exports import EachConfig, EachReport

_ORDER = ("PASS", "SUSPECT", "FAIL", "CRASH", "UNSUPPORTED", "no export", "not run")
_MOST = 40
"""Good configs that are listed; of more than that only the number is told."""


def show_each(report: EachReport, console: Console) -> None:
    """Print the summary of a whole repo."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)
    table.add_column("config", style="name", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("export", justify="right", no_wrap=True)
    table.add_column("verify", justify="right", no_wrap=True)
    table.add_column("why not", overflow="fold")
    good = [one for one in report.configs if one.outcome in ("passed", "skipped")]
    listed = {one.config for one in (good if len(good) <= _MOST else [])}
    for one in report.configs:
        if one.config in listed or one not in good:
            table.add_row(*_cells(one))
    console.print(table)
    if len(good) > _MOST:
        console.print(Text(f"and {len(good):,} configs that are good", "quiet"))
    console.print()
    console.print(_counts(report))


def _cells(one: EachConfig) -> tuple[Text | str, ...]:
    word = one.verdict or one.outcome
    style = STYLES.get(word, "bad")
    again = " (skipped)" if one.outcome == "skipped" else ""
    return (
        printable(one.config),
        Text(word + again, style),
        duration(one.seconds),
        duration(one.verify_seconds) if one.report else "",
        printable(one.reason),
    )


def _counts(report: EachReport) -> Text:
    line = Text(f"{len(report.configs):,} configs in {duration(report.seconds)}: ")
    parts = [
        Text(f"{report.counts[word]:,} {word}", STYLES.get(word, "bad"))
        for word in _ORDER
        if report.counts.get(word)
    ]
    return line + Text(", ").join(parts)
