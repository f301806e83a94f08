"""What the baseline can compute from a few of its tensors and a few parameters, and by which ops.

An op of the candidate, however many it was fused from, computes one of these: the baseline's
tensors that can be made from its operands' partners and from its own parameters, and from nothing
else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tipcheck.backends.graph import GraphOp
    from tipcheck.blame.wiring import Wiring

_MOST_OPS = 24
"""How many of the baseline's ops one op of the candidate is thought to stand for at most."""
_MOST_LOOKED_AT = 400


@dataclass(frozen=True, slots=True)
class Reached:
    """One tensor of the baseline that can be computed.

    Attributes:
        value: its id.
        covers: the ops that do it, in order.
        border: those of the given tensors that are really used.
        parameters: those of the given parameters that are really used.
    """

    value: int
    covers: frozenset[int]
    border: frozenset[int]
    parameters: frozenset[str]


def reachable(wiring: Wiring, border: Iterable[int], parameters: frozenset[str]) -> list[Reached]:
    """Return what can be computed from some tensors and parameters, nearest first.

    Args:
        wiring: the baseline.
        border: ids of its tensors to start from.
        parameters: names of parameters that may be used.
    """
    known = {key: Reached(key, frozenset(), frozenset({key}), frozenset()) for key in set(border)}
    found: list[Reached] = []
    waiting = sorted({op.index for key in known for op, _ in wiring.takers.get(key, ())})
    seen = set(waiting)
    looked_at = 0
    while waiting and looked_at < _MOST_LOOKED_AT:
        op = wiring.graph.ops[waiting.pop(0)]
        looked_at += 1
        made = _apply(wiring, op, known, parameters)
        if made is None:
            continue
        for key in op.results:
            if key in known:
                continue
            known[key] = Reached(key, *made)
            found.append(known[key])
            fresh = {taker.index for taker, _ in wiring.takers.get(key, ())} - seen
            seen |= fresh
            waiting = sorted([*waiting, *fresh])
    return found


def _apply(
    wiring: Wiring, op: GraphOp, known: dict[int, Reached], parameters: frozenset[str]
) -> tuple[frozenset[int], frozenset[int], frozenset[str]] | None:
    used = wiring.parameters(op)
    if not used <= parameters:
        return None
    data = wiring.data(op)
    if any(key not in known for key in data):
        return None
    parts = [known[key] for key in data]
    covers = frozenset({op.index}).union(*(part.covers for part in parts))
    if len(covers) > _MOST_OPS:
        return None
    border = frozenset[int]().union(*(part.border for part in parts))
    return covers, border, used.union(*(part.parameters for part in parts))
