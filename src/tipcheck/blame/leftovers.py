"""Says why a tensor has no partner, with the proof from program and passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tipcheck.blame.alignment import Match, Pairing, Reason
from tipcheck.blame.kinds import moves_only, reorders_only

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcheck.backends.graph import Graph, GraphOp
    from tipcheck.blame.wiring import Wiring


def no_partner(candidate: Wiring, baseline: Wiring, key: int, op: GraphOp) -> Pairing:
    """Return the pairing of a tensor of the candidate for which nothing fits."""
    reason, note = _reason(candidate, baseline, key, op)
    return Pairing(key, None, reason=reason, note=note)


def _reason(candidate: Wiring, baseline: Wiring, key: int, op: GraphOp) -> tuple[Reason, str]:
    value = candidate.value(key)
    if not value.floating:
        return Reason.NOT_FLOATING, f"is {value.dtype or 'of unknown type'}"
    if key not in candidate.needed:
        return Reason.DEAD, "no output is made from it"
    if moves_only(op) or reorders_only(op):
        done = _changed(candidate.graph, op.type)
        if done or candidate.kinds[op.index] not in baseline.kinds:
            return Reason.LAYOUT, f"{op.type} {done or 'stands in this program only'}"
    return Reason.UNKNOWN, "nothing in the baseline fits"


def _changed(graph: Graph, op_type: str) -> str:
    for record in graph.passes:
        if op_type in record.added:
            return f"was put in by {record.name}"
    return ""


def leftover(baseline: Wiring, candidate: Wiring, pairings: Sequence[Pairing]) -> list[Pairing]:
    """Return the tensors of the baseline that are nobody's partner, each with the reason."""
    taken = {pairing.baseline for pairing in pairings}
    into: dict[int, Pairing] = {}
    for pairing in pairings:
        if pairing.match is Match.FUSED:
            for index in pairing.covers:
                into.setdefault(index, pairing)
    left = []
    for op in baseline.graph.ops:
        for key in op.results:
            if key not in taken:
                reason, note = _why(baseline, candidate, key, into.get(op.index))
                left.append(Pairing(None, key, reason=reason, note=note))
    return left


def _why(baseline: Wiring, candidate: Wiring, key: int, into: Pairing | None) -> tuple[Reason, str]:
    value = baseline.value(key)
    op = baseline.graph.ops[value.producer]
    if value.leaves:
        return Reason.CONSTANT_FOLDED, "made from parameters only"
    if not value.floating:
        return Reason.NOT_FLOATING, f"is {value.dtype or 'of unknown type'}"
    if key not in baseline.needed:
        return Reason.DEAD, "no output is made from it"
    if into is not None and into.candidate is not None:
        fused = candidate.graph.op_of(into.candidate)
        if fused is not None:
            by = [record.name for record in candidate.graph.passes if fused.type in record.added]
            passes = f" by {', '.join(dict.fromkeys(by))}" if by else ""
            return Reason.FUSED_AWAY, f"into {fused.type}:{fused.index}{passes}"
    if moves_only(op) or reorders_only(op):
        return Reason.LAYOUT, f"{op.type} stands in this program only"
    return Reason.UNKNOWN, "nothing in the candidate fits"
