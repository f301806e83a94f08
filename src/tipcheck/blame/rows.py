"""Makes the rows of the table out of what was compared and what was replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.backends.trace import TracedTensor
from tipcheck.blame import budget
from tipcheck.blame.alignment import Match, Reason
from tipcheck.blame.replays import WHOLE_STEPS
from tipcheck.blame.table import OpRow, Unmatched
from tipcheck.blame.verdicts import row_status
from tipcheck.compare.verdict import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tipcheck.backends.graph import Graph
    from tipcheck.blame.alignment import Alignment, Pairing
    from tipcheck.blame.lockstep import ComparedPair
    from tipcheck.blame.table import Introduced

_STEPS = "steps of 8 bits, whose scale the tensor does not tell: judged by what is made from them"
_SATURATED = 0.001
"""From this share of elements at the end of its range on, an int8 tensor is said to saturate."""


def compared_row(
    pair: ComparedPair,
    graphs: tuple[Graph, Graph],
    introduced: Introduced | None,
    observed: Mapping[str, Mapping[str, Any]],
    sample: int,
) -> OpRow:
    """Return the row of one pair of tensors."""
    baseline, candidate = graphs
    pairing = pair.pairing
    key = pairing.candidate
    assert key is not None  # noqa: S101 - only pairs of two tensors are compared
    tensor = pair.candidate or from_graph(candidate, key)
    partner = pair.baseline or from_graph(baseline, pairing.baseline or 0)
    verdict = pair.verdict
    notes = [pair.why_not] if pair.why_not else []
    if tensor.dtype in WHOLE_STEPS and partner.dtype not in WHOLE_STEPS:
        verdict = None
        notes.append(_STEPS)
    measures = verdict.measures if verdict else None
    if verdict is not None and measures is None:
        notes.append(verdict.reason)
    notes += _observed(observed, key)
    form = budget.format_of(tensor.dtype, partner.dtype)
    status = row_status(introduced, measures, form)
    if verdict is not None and measures is None:
        status = verdict.status
    return OpRow(
        tensor=tensor,
        baseline=partner,
        match=pairing.match.value,
        status=status,
        propagated=measures,
        introduced=introduced,
        sample=sample,
        note="; ".join(notes),
    )


def _observed(observed: Mapping[str, Mapping[str, Any]], key: int) -> list[str]:
    notes = []
    share = observed.get("saturated", {}).get(str(key), 0.0)
    if share >= _SATURATED:
        notes.append(f"{100 * share:.2g} % of its elements are saturated")
    told = observed.get("told", {}).get(str(key))
    return [*notes, str(told)] if told else notes


def unmatched_rows(
    alignment: Alignment, candidate: Graph, chosen: Collection[int] | None
) -> list[OpRow]:
    """Return a row for every floating tensor of the candidate that has no partner."""
    return [
        _unmatched(pairing, pairing.candidate, candidate)
        for pairing in alignment.pairings
        if pairing.candidate is not None
        and pairing.baseline is None
        and candidate.values[pairing.candidate].floating
        and pairing.reason is not Reason.NOT_FLOATING
        and (chosen is None or pairing.candidate in chosen)
    ]


def _unmatched(pairing: Pairing, key: int, candidate: Graph) -> OpRow:
    return OpRow(
        tensor=from_graph(candidate, key),
        baseline=None,
        match=f"none: {pairing.reason.value}",
        status=Status.UNSUPPORTED,
        note=pairing.note,
    )


def left_over(alignment: Alignment, baseline: Graph) -> tuple[Unmatched, ...]:
    """Return the floating tensors that only the baseline has."""
    found = []
    for pairing in alignment.pairings:
        key = pairing.baseline
        if pairing.candidate is not None or key is None or pairing.match is not Match.NONE:
            continue
        if not baseline.values[key].floating:
            continue
        op = baseline.op_of(key)
        found.append(
            Unmatched(
                op_type=op.type if op else "",
                name=baseline.values[key].name or _called(baseline, key),
                layer_path=op.layer_path if op else "",
                reason=pairing.reason.value,
                note=pairing.note,
            )
        )
    return tuple(found)


def _called(graph: Graph, key: int) -> str:
    op = graph.op_of(key)
    return f"{op.type.rpartition('.')[2]}:{op.index}" if op else f"value {key}"


def from_graph(graph: Graph, key: int) -> TracedTensor:
    """Return what a program says of a tensor that was not seen while it ran."""
    value, op = graph.values[key], graph.op_of(key)
    return TracedTensor(
        index=-1,
        op_type=op.type if op else "",
        name=value.name or _called(graph, key),
        layer_path=op.layer_path if op else "",
        dtype=value.dtype,
        layout="",
        shape=value.shape,
        readable=False,
        op_index=op.index if op else -1,
        value=key,
    )


def in_op_order(rows: list[OpRow]) -> list[OpRow]:
    """Return rows as the candidate runs them."""
    return sorted(rows, key=lambda row: (row.tensor.op_index, row.tensor.value))
