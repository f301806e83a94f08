"""The op table on the terminal: every tensor in op order, who is to blame, and the verdict."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid
from rich.text import Text

from tipcheck.blame.alignment import Match
from tipcheck.compare.verdict import Status
from tipcheck.report.debug_cells import cells, display_name, sample_name, severity
from tipcheck.report.fitting import print_fitting
from tipcheck.report.terminal import STYLES, decibels, printable, short, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from tipcheck.blame.table import OpRow, Table

_MARKS = {Status.PASS: "✓", Status.FAIL: "✗", Status.SUSPECT: "?", Status.CRASH: "✗"}
_SPARE = ("max abs", "shape", "layer", "match")
"""Columns that a narrow terminal can do without, least needed first."""
_SHAPE, _MISMATCHED = 2, 3
_NAME_WIDTH, _SHAPE_WIDTH, _MATCH_WIDTH = 20, 13, 5
_MATCHES = {
    Match.FUSED.value: "fused",
    Match.SAME_OP.value: "same",
    Match.MOVED.value: "moved",
    Match.CONSUMER.value: "consumer",
    Match.VALUES.value: "values",
    Match.NAME.value: "name",
}


def show_table(table: Table, console: Console | None = None, *, rows: str = "all") -> None:
    """Print a table.

    Args:
        table: what was found.
        console: where to; the terminal by default.
        rows: ``all``, ``bad`` for those that are not PASS only, or ``none``.
    """
    console = console or terminal()
    shown = [
        (row, texts)
        for row, texts in zip(table.rows, cells(table), strict=True)
        if rows == "all" or (rows == "bad" and severity(row) in ("bad", "warn"))
    ]
    if shown and rows != "none":
        several = len(table.samples) > 1
        grid = _grid(several=several)
        for row, texts in shown:
            line = _line(row, [cell.text for cell in texts])
            sample = [Text(sample_name(table, row))] if several else []
            grid.add_row(*line[:-1], *sample, line[-1])
        print_fitting(console, grid, _SPARE, cut=("layer",))
    _show_unmatched(table, console)
    _show_outputs(table, console)
    for place, culprit in enumerate(table.culprits, start=1):
        head = f"{place}. {culprit.op_type}"
        console.print(Text.assemble((head, "bad"), "  ", printable(culprit.evidence)))
    for note in table.notes:
        console.print(Text(f"note: {printable(note)}", "warn"))
    console.print(_last_line(table))


def _grid(*, several: bool) -> Grid:
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False)
    grid.add_column("", no_wrap=True)
    grid.add_column("tensor", style="name", no_wrap=True, min_width=_NAME_WIDTH)
    grid.add_column("shape", no_wrap=True, min_width=_SHAPE_WIDTH)
    for title in ("mismatched", "max abs", "SQNR dB", "introduced dB"):
        grid.add_column(title, justify="right", no_wrap=True, min_width=len(title))
    grid.add_column("match", no_wrap=True, min_width=_MATCH_WIDTH)
    if several:
        grid.add_column("sample", no_wrap=True)
    grid.add_column("layer", overflow="ellipsis")  # the one that gives way when there is no room
    return grid


def _line(row: OpRow, texts: list[str]) -> list[Text]:
    measures = row.introduced.measures if row.introduced else None
    plain = [
        printable(display_name(row.tensor)),
        texts[_SHAPE].removeprefix("match, ").replace("mismatch, ", "≠ "),
        texts[_MISMATCHED],
        short(row.propagated.max_abs) if row.propagated else "-",
        decibels(row.propagated.sqnr_db) if row.propagated else "-",
        decibels(measures.sqnr_db) if measures else "-",
        _MATCHES.get(row.match, row.match),
    ]
    path = Text(printable(row.tensor.layer_path), no_wrap=True, overflow="ellipsis")
    level = severity(row)
    style = {"bad": "bad", "warn": "warn", "quiet": "quiet"}.get(level, "")
    mark = Text(_MARKS.get(row.status, "·"), STYLES[row.status.value])
    path.stylize(style)
    return [mark, *(Text(item, style) for item in plain), path]


def _show_unmatched(table: Table, console: Console) -> None:
    lost = [item for item in table.unmatched if item.reason]
    if not lost:
        return
    reasons: dict[str, int] = {}
    for item in lost:
        reasons[item.reason] = reasons.get(item.reason, 0) + 1
    told = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    console.print(Text(f"in the baseline only: {told}", "quiet"))


def _show_outputs(table: Table, console: Console) -> None:
    for output in table.outputs:
        style = STYLES[output.status.value]
        measures = output.measures
        ratio = decibels(measures.sqnr_db) if measures else "-"
        line = Text.assemble(
            ("output ", "quiet"),
            (printable(output.name), "name"),
            f" {list(output.shape)}: ",
            (output.status.value, style),
            f", {printable(output.reason)}",
            f" (SQNR {ratio} dB)" if measures and measures.sqnr_db != math.inf else "",
        )
        console.print(line)


def _last_line(table: Table) -> Text:
    status = table.status.value
    covered = table.coverage
    text = Text.assemble((status, STYLES[status]), f"  {printable(table.sentence)}")
    parts = [
        f"{covered.matched} of {covered.chosen} tensors matched",
        f"{covered.judged} compared ({covered.elements:,} elements)",
        f"{covered.replayed} with introduced error",
    ]
    if covered.chosen != covered.tensors:
        parts.append(f"{covered.chosen} of {covered.tensors} were asked for")
    if covered.samples > 1:
        parts.append(f"{covered.samples} samples, each row shows its worst")
    text.append(f"\n{'; '.join(parts)}", "quiet")
    if not table.complete:
        text.append("\nthe run ended early: the table is not complete", "warn")
    return text
