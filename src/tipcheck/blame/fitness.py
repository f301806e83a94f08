"""How well a tensor of the baseline fits what an op of the candidate computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcheck.backends.graph import GraphOp
from tipcheck.blame.kinds import ACTIVATIONS, activation_of, can_fuse, kind_of

if TYPE_CHECKING:
    from tipcheck.blame.reach import Reached
    from tipcheck.blame.wiring import Wiring

_WEIGHTS = {
    "kind": 40.0,  # the op itself is among those it would stand for
    "border": 20.0,  # everything it is fed is used
    "next": 30.0,  # the same is done with the result
    "activation": 15.0,
    "constants": 20.0,  # the constants of the program are the same
    "attributes": 8.0,
    "part": 5.0,  # it is the same one of several results
    "path": 3.0,
    "plain": 35.0,  # an op into which nothing was fused would stand for more than itself
    "length": 0.5,  # for each op it would stand for
}
CERTAIN = 80.0
"""A score that only comes about when kind, border and what is done next all agree."""
_QUIET = {"data_format", "is_test", "use_quantizer", "is_inplace", "padding_algorithm", "dtype"}


@dataclass(frozen=True, slots=True)
class Setting:
    """What an op of the candidate is made from.

    Attributes:
        op: the op.
        steps: kinds of the ops before it whose results have no partner.
        border: partners of the tensors it is made from.
        part: which result of an op with several it is made from, by steps that have no partner.
        told: constants of the program that it takes, and each step before it without a partner.
    """

    op: GraphOp
    steps: frozenset[str]
    border: frozenset[int]
    part: int
    told: tuple[tuple[str, ...], ...]


def fitness(baseline: Wiring, candidate: Wiring, one: Reached, setting: Setting) -> float:
    """Return a score; zero or less means that it does not fit."""
    op, border = setting.op, setting.border
    kind = candidate.kinds[op.index]
    alike = [index for index in one.covers if baseline.kinds[index] == kind]
    carried = _carried(baseline, candidate, one, setting)
    overlap = _overlap(candidate.roles(op.results[0]), baseline.roles(one.value))
    whole = overlap == 1.0 and one.border == border and len(one.covers) == 1
    fused = can_fuse(op) or (op.type in candidate.made_by_passes and kind not in baseline.kinds)
    if not alike and not carried and not fused and not whole:
        return 0.0  # at most the last step of several that stand for one op of the baseline
    score = _WEIGHTS["kind"] * bool(alike or carried)
    score += _WEIGHTS["border"] * len(one.border) / max(1, len(border))
    score += _WEIGHTS["next"] * overlap
    score += _WEIGHTS["activation"] * _activation(baseline, one, op)
    score -= _WEIGHTS["length"] * len(one.covers)
    if alike and not fused and not carried and len(one.covers) > 1:
        score -= _WEIGHTS["plain"]
    last = baseline.graph.ops[baseline.value(one.value).producer]
    if op.layer_path and op.layer_path == last.layer_path:
        score += _WEIGHTS["path"]
    if alike:
        twin = baseline.graph.ops[alike[0]]
        score += _WEIGHTS["constants"] * _constants(baseline, candidate, twin, op)
        score += _WEIGHTS["attributes"] * _attributes(twin, op)
    else:
        score += _WEIGHTS["constants"] * _told(baseline, one, setting.told)
        score += _WEIGHTS["part"] * (last.results.index(one.value) == setting.part)
    return score


def _carried(baseline: Wiring, candidate: Wiring, one: Reached, setting: Setting) -> bool:
    """Whether the op finishes what the steps before it began, and nothing else is covered."""
    told = setting.steps | {candidate.kinds[setting.op.index]}
    gone = baseline.names - candidate.names
    covered = [baseline.graph.ops[index] for index in one.covers]
    return any(baseline.kinds[index] in setting.steps for index in one.covers) and all(
        baseline.kinds[op.index] in told or baseline.parameters(op) & gone for op in covered
    )


def _told(baseline: Wiring, one: Reached, told: tuple[tuple[str, ...], ...]) -> float:
    """Return how many of the baseline's constants one of the candidate's steps starts with."""
    ours = baseline.told(
        key for index in sorted(one.covers) for key in baseline.graph.ops[index].operands
    )
    if not ours:
        return 0.0
    same = max(sum(a == b for a, b in zip(ours, step, strict=False)) for step in told)
    return same / len(ours)


def _overlap(ours: frozenset[str], theirs: frozenset[str]) -> float:
    if not ours and not theirs:
        return 1.0
    return len(ours & theirs) / len(ours | theirs)


def _activation(baseline: Wiring, one: Reached, op: GraphOp) -> float:
    """Whether the last op is the activation that was fused; 0 where that cannot be said."""
    if not can_fuse(op):
        return 0.0
    fused = activation_of(op)
    last = baseline.kinds[baseline.value(one.value).producer]
    if fused:
        covered = {baseline.kinds[index] for index in one.covers}
        return 1.0 if last == fused else (0.3 if fused in covered else -0.5)
    return -0.5 if last in ACTIVATIONS and last != kind_of(op.type) else 0.0


def _constants(baseline: Wiring, candidate: Wiring, twin: GraphOp, op: GraphOp) -> float:
    """Whether the constants that stand in the program are equal, operand by operand."""
    ours, theirs = (
        [leaves for leaves in side.constants(which) if leaves and leaves[0].startswith("=")]
        for side, which in ((candidate, op), (baseline, twin))
    )
    if not ours and not theirs:
        return 0.0
    if len(ours) != len(theirs):
        return -0.25
    return 1.0 if ours == theirs else -1.0


def _attributes(twin: GraphOp, op: GraphOp) -> float:
    shared = (twin.attributes.keys() & op.attributes.keys()) - _QUIET
    if not shared:
        return 0.0
    equal: int = sum(twin.attributes[key] == op.attributes[key] for key in shared)
    return 2.0 * equal / len(shared) - 1.0
