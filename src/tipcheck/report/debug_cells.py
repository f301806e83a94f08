"""The cells of the op table: one list for the spreadsheet and for CSV, so that the two agree.

A number is rounded to what its format shows before it is written anywhere. What a spreadsheet
displays is then the very text of the CSV file, whichever program converts it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcheck.compare.verdict import Status
from tipcheck.report.terminal import printable

if TYPE_CHECKING:
    from tipcheck.backends.trace import TracedTensor
    from tipcheck.blame.table import OpRow, Table
    from tipcheck.compare.verdict import Measures

COLUMNS = (
    "Operator Type",
    "Tensor Name",
    "Shape",
    "Mismatched Elements",
    "Max Atol",
    "Max Rtol",
    "Min Val(base)",
    "Max Val(base)",
    "SQNR",
    "Introduced Error",
    "Propagated Error",
    "Match",
    "Layer Path",
    "Verdict",
    "Sample",
    "Baseline Tensor",
    "Note",
)
"""The first eight are those of the script that this table replaces."""

_NONE = "-"
_PASSING, _FETCH = "_inner_var_", "fetch_name_"
_PLAIN, _SCIENTIFIC, _TENTHS, _WHOLE = "0.000000", "0.000E+00", "0.0", "0"
_SHOWN = {_PLAIN: ".6f", _SCIENTIFIC: ".3E", _TENTHS: ".1f", _WHOLE: ".0f"}
_SMALLEST_PLAIN, _LARGEST_PLAIN = 1e-4, 1e9


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what is shown, and the number behind it where there is one.

    Attributes:
        text: what is shown.
        number: the same as a number, already rounded to what is shown.
        form: the spreadsheet's format for it.
    """

    text: str
    number: float | None = None
    form: str = ""


def display_name(tensor: TracedTensor) -> str:
    """Return a name that is the same in every run: Paddle 3 makes up another one in each."""
    passing = _PASSING in tensor.name or tensor.name.startswith(_FETCH)
    if tensor.op_index < 0 or not (passing or not tensor.name):
        return tensor.name
    return f"{tensor.op_type.rpartition('.')[2]}:{tensor.op_index}"


def cells(table: Table) -> list[tuple[Cell, ...]]:
    """Return the rows of the table, without the heading."""
    return [_row(row, sample_name(table, row)) for row in table.rows]


def sample_name(table: Table, row: OpRow) -> str:
    """Return what people call the sample that a row shows."""
    named = row.sample < len(table.samples)
    return printable(table.samples[row.sample]) if named else str(row.sample)


def severity(row: OpRow) -> str:
    """Return how a row is to be coloured: ``bad``, ``warn``, ``quiet`` or nothing."""
    if row.status in (Status.FAIL, Status.CRASH):
        return "bad"
    if row.status is Status.SUSPECT:
        return "warn"
    return "quiet" if row.baseline is None or row.propagated is None else ""


def relative_error(sqnr_db: float | None) -> float | None:
    """Return rms(difference) / rms(reference) for a signal to noise ratio."""
    return None if sqnr_db is None else float(10.0 ** (-sqnr_db / 20.0))


def _row(row: OpRow, sample: str) -> tuple[Cell, ...]:
    measures = row.propagated
    made = row.introduced.measures if row.introduced else None
    return (
        Cell(row.tensor.op_type),
        Cell(printable(display_name(row.tensor))),
        Cell(_shape(row)),
        Cell(_mismatched(measures)),
        _number(measures.max_abs if measures else None),
        _number(measures.max_relative if measures else None),
        Cell(_extremes(measures, "minimum")),
        Cell(_extremes(measures, "maximum")),
        _sqnr(measures),
        _error(made),
        _error(measures),
        Cell(row.match),
        Cell(printable(row.tensor.layer_path)),
        Cell(row.status.value),
        Cell(sample),
        Cell(printable(display_name(row.baseline)) if row.baseline else _NONE),
        Cell(printable(row.note)),
    )


def _shape(row: OpRow) -> str:
    mine = _lengths(row.tensor.shape)
    if row.baseline is None:
        return f"no baseline, {mine}"
    if row.baseline.shape == row.tensor.shape:
        return f"match, {mine}"
    return f"mismatch, {mine}({_lengths(row.baseline.shape)})"


def _lengths(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _mismatched(measures: Measures | None) -> str:
    if measures is None:
        return _NONE
    return f"{measures.mismatched}/{elements_of(measures)}"


def elements_of(measures: Measures) -> int:
    """Return how many elements a tensor has that was measured."""
    side = measures.expected
    other = measures.actual
    odd = max(
        side.nan + side.positive_inf + side.negative_inf,
        other.nan + other.positive_inf + other.negative_inf,
    )
    return max(measures.compared + odd, measures.mismatched)


def _extremes(measures: Measures | None, which: str) -> str:
    if measures is None:
        return _NONE
    pair = [getattr(side, which) for side in (measures.actual, measures.expected)]
    plain = all(
        value is not None and (value == 0 or _SMALLEST_PLAIN <= abs(value) < _LARGEST_PLAIN)
        for value in pair
    )
    form = ".6f" if plain else ".6e"
    shown = [_NONE if value is None else format(value, form) for value in pair]
    return f"{shown[0]}({shown[1]})"


def _number(value: float | None) -> Cell:
    if value is None:
        return Cell(_NONE)
    plain = value == 0 or _SMALLEST_PLAIN <= abs(value) < _LARGEST_PLAIN
    return _shown(value, _PLAIN if plain else _SCIENTIFIC)


def _sqnr(measures: Measures | None) -> Cell:
    value = measures.sqnr_db if measures else None
    if value == math.inf:
        return Cell("equal")
    return Cell(_NONE) if value is None else _shown(value, _TENTHS)


def _error(measures: Measures | None) -> Cell:
    value = relative_error(measures.sqnr_db) if measures else None
    if measures and measures.actual.nan > measures.expected.nan:
        return Cell("NaN")
    return Cell(_NONE) if value is None else _shown(value, _SCIENTIFIC if value else _WHOLE)


def _shown(value: float, form: str) -> Cell:
    if not math.isfinite(value):
        return Cell(str(value))
    text = format(value, _SHOWN[form])
    if float(text) == 0:
        text = text.removeprefix("-")
    return Cell(text, float(text), form)
