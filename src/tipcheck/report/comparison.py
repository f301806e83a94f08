"""A comparison on the terminal.

A table of all outputs, the details of those that failed, and one last line that says it all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tipcheck.compare.verdict import Gate, Status
from tipcheck.report.fitting import print_fitting
from tipcheck.report.terminal import STYLES, decibels, printable, short, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from tipcheck.compare.verdict import Comparison, Measures, TensorVerdict

_MARKS = {Status.PASS: "✓", Status.FAIL: "✗"}
_SPARE = ("relative", "÷ rms", "SQNR dB", "dtype", "shape", "max abs")
"""Columns that a narrow terminal can do without, least needed first."""


def show_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print a comparison."""
    console = console or terminal()
    if comparison.tensors:
        print_fitting(console, _table(comparison.tensors), _SPARE)
    for verdict in comparison.tensors:
        if verdict.status is not Status.PASS or verdict.notes:
            console.print(_details(verdict), end="\n\n")
    console.print(_last_line(comparison))


def _table(verdicts: tuple[TensorVerdict, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("output", style="name", overflow="fold")
    table.add_column("dtype")
    table.add_column("shape")
    table.add_column("mismatched", justify="right")
    for title in ("max abs", "÷ rms", "relative", "SQNR dB"):
        table.add_column(title, justify="right")
    table.add_column("decided by")
    for verdict in verdicts:
        measures = verdict.measures
        table.add_row(
            Text(f"{_MARKS[verdict.status]} {verdict.status.value}", STYLES[verdict.status.value]),
            Text(printable(verdict.name)),
            verdict.dtype,
            " ".join(map(str, verdict.shape)) or "scalar",
            f"{measures.mismatched:,}/{verdict.elements:,}" if measures else "-",
            *_numbers(verdict),
            verdict.gate.value,
        )
    return table


def _numbers(verdict: TensorVerdict) -> tuple[str, str, str, str]:
    """Return the distances; none for an output that NaN failed, whose rest may look perfect."""
    measures = verdict.measures
    failed_by_nan = verdict.gate is Gate.NONFINITE and verdict.status is Status.FAIL
    if measures is None or failed_by_nan:
        return ("-", "-", "-", "-")
    return (
        short(measures.max_abs),
        short(measures.max_abs_over_rms),
        short(measures.max_relative),
        decibels(measures.sqnr_db),
    )


def _details(verdict: TensorVerdict) -> Text:
    style = STYLES[verdict.status.value]
    text = Text.assemble((printable(verdict.name), "name"), ": ", (verdict.reason, style))
    for line in _evidence(verdict):
        text.append(f"\n  {line}", "quiet")
    for note in verdict.notes:
        text.append(f"\n  note: {note}", "warn")
    return text


def _evidence(verdict: TensorVerdict) -> list[str]:
    lines = []
    measures = verdict.measures
    if verdict.worst is not None:
        place = ", ".join(map(str, verdict.worst.index))
        used = measures.tolerance_used if measures else None
        times = f", {used:.3g} x its tolerance" if used is not None and used > 1 else ""
        lines.append(
            f"worst at [{place}]: expected {_value(verdict.worst.expected)}, "
            f"actual {_value(verdict.worst.actual)}{times}"
        )
    if measures is not None and measures.expected.minimum is not None:
        lines.append(
            f"range: expected {short(measures.expected.minimum, 6)} .. "
            f"{short(measures.expected.maximum, 6)}, "
            f"actual {short(measures.actual.minimum, 6)} .. {short(measures.actual.maximum, 6)}"
        )
    if measures is not None and _odd(measures):
        lines.append(f"not finite: expected {_counts(measures, 0)}, actual {_counts(measures, 1)}")
    if verdict.threshold is not None:
        lines.append(
            f"tolerance: rtol {verdict.threshold.rtol:g}, atol {verdict.threshold.atol:g} "
            f"({verdict.threshold.source})"
        )
    return lines


def _value(value: float | str) -> str:
    return f"{value:.9g}" if isinstance(value, float) else printable(str(value))


def _odd(measures: Measures) -> int:
    return sum(
        side.nan + side.positive_inf + side.negative_inf
        for side in (measures.expected, measures.actual)
    )


def _counts(measures: Measures, which: int) -> str:
    side = (measures.expected, measures.actual)[which]
    return f"{side.nan} NaN, {side.positive_inf} +inf, {side.negative_inf} -inf"


def _last_line(comparison: Comparison) -> Text:
    status = comparison.status.value
    coverage = comparison.coverage
    text = Text.assemble((status, STYLES[status]), f"  {printable(comparison.reason)}")
    notes = sum(len(item.notes) for item in comparison.tensors)
    if notes:
        text.append(f"; read the note{'s' * (notes > 1)} above", "warn")
    covered = f"{coverage.outputs_compared} of {coverage.outputs} outputs"
    text.append(f"\ncompared: {covered}, {coverage.elements_compared:,} elements", "quiet")
    blunt = max((item.resolution for item in comparison.tensors if item.resolution), default=None)
    if blunt is not None:
        text.append(f"; a relative error below {blunt:.1e} could pass unseen", "quiet")
    return text
