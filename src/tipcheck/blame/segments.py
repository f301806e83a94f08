"""Which part of the baseline lies between observed tensors: what one row has to answer for.

An op of an optimised program does the work of several, and some tensors are not looked at. What a
tensor of the candidate should be is computed from the nearest tensors before it that the candidate
really had; the ops in between are its segment. Every op of the baseline that leads to an observed
tensor lies in the segment of the first such tensor, so that an error has one row to show up in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tipcheck.backends.graph import Graph


@dataclass(frozen=True, slots=True)
class Segment:
    """The ops between some observed values and the next.

    Attributes:
        target: the value at its end, as its id in the baseline's graph.
        ops: indices of the ops, in order.
        inputs: the observed values it starts from.
        parameters: names of the parameters its ops use.
    """

    target: int
    ops: tuple[int, ...]
    inputs: tuple[int, ...]
    parameters: tuple[str, ...]


def segment_of(graph: Graph, target: int, observed: Collection[int]) -> Segment:
    """Return the ops that make a value from observed ones and from the model's inputs."""
    starts = {*observed, *graph.inputs.values()} - {target}
    ops: set[int] = set()
    inputs: set[int] = set()
    leaves: set[str] = set()
    own = {value: name for name, value in graph.parameters.items()}
    pending = [target]
    while pending:
        value = pending.pop()
        if value < 0:
            continue
        if value in starts:
            inputs.add(value)
            continue
        maker = graph.values[value].producer
        if maker < 0:
            made_from = graph.values[value].leaves or (own.get(value, ""),)
            leaves.update(name for name in made_from if name and not name.startswith("="))
        elif maker not in ops:
            ops.add(maker)
            pending += graph.ops[maker].operands
    return Segment(target, tuple(sorted(ops)), tuple(sorted(inputs)), tuple(sorted(leaves)))


def last_use(segments: Iterable[Segment]) -> dict[int, int]:
    """Return, for every observed value, the position of the last segment that needs it."""
    last: dict[int, int] = {}
    for at, segment in enumerate(segments):
        for value in (*segment.inputs, segment.target):
            last[value] = at
    return last
