"""Takes back blame that contradicts itself, before it is spoken.

Who introduces a large error passes it on. When everything that is made from a tensor is right, the
tensor was not wrong: it is another value than the one it was matched with, such as a product whose
scaling a pass has moved. And an op whose output is right has introduced nothing, whatever the
tensors it was computed from are said to be.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tipcheck.blame import budget
from tipcheck.compare.verdict import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tipcheck.backends.graph import Graph
    from tipcheck.blame.table import OpRow

_SHIFTS = frozenset({"add", "elementwise_add"})
_RIGHT = "its output is right, so what it was computed from is matched with another value"
_BARELY = "a little more than its format explains, but what it gives is right"
_OTHER = "everything made from it is right, so it is another value than the one it is matched with"


def without_contradictions(rows: Sequence[OpRow], candidate: Graph) -> tuple[OpRow, ...]:
    """Return the rows, with blame taken back where what follows contradicts it."""
    by_value = {row.tensor.value: row for row in rows}
    consumers: dict[int, list[int]] = {}
    for op in candidate.ops:
        for operand in set(op.operands):
            consumers.setdefault(operand, []).extend(op.results)
    return tuple(_judged(row, by_value, consumers) for row in rows)


def _judged(row: OpRow, rows: Mapping[int, OpRow], consumers: Mapping[int, list[int]]) -> OpRow:
    made = row.introduced
    if made is None or made.status not in (Status.FAIL, Status.SUSPECT):
        return row
    if _is_right(row) and made.status is Status.SUSPECT:
        barely = replace(made, status=Status.PASS, reason=f"{made.reason}: {_BARELY}")
        return replace(row, status=Status.PASS, introduced=barely)
    if _is_right(row):
        return replace(
            row,
            status=Status.PASS,
            introduced=replace(made, status=Status.UNSUPPORTED, reason=_RIGHT),
        )
    if _vindicated(row, rows, consumers):
        doubt = replace(made, status=Status.UNSUPPORTED, reason=_OTHER)
        return replace(row, status=Status.UNSUPPORTED, introduced=doubt)
    return row


def _vindicated(row: OpRow, rows: Mapping[int, OpRow], consumers: Mapping[int, list[int]]) -> bool:
    """Whether everything that is made from a tensor is right.

    A pass that folds a scale into a product moves it over the addition behind, too: so one that is
    vindicated itself counts as right.
    """
    after = [rows[value] for value in consumers.get(row.tensor.value, ()) if value in rows]
    seen = [one for one in after if one.propagated is not None]
    return bool(seen) and all(
        _is_right(one) or (_only_shifts(one) and _all_right(one, rows, consumers)) for one in seen
    )


def _all_right(row: OpRow, rows: Mapping[int, OpRow], consumers: Mapping[int, list[int]]) -> bool:
    after = [rows[value] for value in consumers.get(row.tensor.value, ()) if value in rows]
    seen = [one for one in after if one.propagated is not None]
    return bool(seen) and all(map(_is_right, seen))


def _only_shifts(row: OpRow) -> bool:
    return row.tensor.op_type.rpartition(".")[2].rstrip("_") in _SHIFTS


def _is_right(row: OpRow) -> bool:
    """Whether a tensor is the baseline's, as far as its format lets it be."""
    found = row.propagated
    if found is None or found.sqnr_db is None or not found.compared:
        return False
    sides = (found.actual, found.expected)
    if len({(side.nan, side.positive_inf, side.negative_inf) for side in sides}) > 1:
        return False
    partner = row.baseline.dtype if row.baseline else ""
    return found.sqnr_db >= budget.format_of(row.tensor.dtype, partner).warn_db
