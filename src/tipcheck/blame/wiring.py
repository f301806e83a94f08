"""One program seen from its tensors: who takes each, and what is constant in each op."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tipcheck.blame.kinds import kind_of, passes_through, role_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tipcheck.backends.graph import Graph, GraphOp, GraphValue


class Wiring:
    """Looks up what a graph does not say directly."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.kinds = [kind_of(op.type) for op in graph.ops]
        self._outputs = {key: place for place, key in reversed(list(enumerate(graph.outputs)))}

    @cached_property
    def takers(self) -> dict[int, list[tuple[GraphOp, int]]]:
        """For each value the ops that take it, and at which position."""
        found: dict[int, list[tuple[GraphOp, int]]] = {}
        for op in self.graph.ops:
            if not op.results:
                continue
            for position, key in enumerate(op.operands):
                if key >= 0:
                    found.setdefault(key, []).append((op, position))
        return found

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of all parameters that anything is made from."""
        return frozenset(
            leaf for value in self.graph.values for leaf in value.leaves if not leaf.startswith("=")
        )

    @cached_property
    def needed(self) -> frozenset[int]:
        """Values from which an output is made."""
        needed = set(self.graph.outputs)
        for op in reversed(self.graph.ops):
            if needed.intersection(op.results):
                needed.update(op.operands)
        return frozenset(needed)

    @cached_property
    def made_by_passes(self) -> frozenset[str]:
        """Op types that optimisation has put in."""
        return frozenset(name for record in self.graph.passes for name in record.added)

    def told(self, keys: Iterable[int]) -> tuple[str, ...]:
        """Return the constants that stand in the program itself, without their brackets."""
        return tuple(
            leaf.strip("=[]")
            for key in keys
            if key >= 0
            for leaf in self.graph.values[key].leaves
            if leaf.startswith("=")
        )

    def value(self, key: int) -> GraphValue:
        """Return one value."""
        return self.graph.values[key]

    def is_constant(self, key: int) -> bool:
        """Whether a value depends on no input of the model."""
        value = self.graph.values[key]
        return bool(value.leaves) or (value.producer < 0 and key not in self.graph.inputs.values())

    def data(self, op: GraphOp) -> list[int]:
        """Return the operands of an op that depend on an input of the model."""
        return [key for key in op.operands if key >= 0 and not self.is_constant(key)]

    def parameters(self, op: GraphOp) -> frozenset[str]:
        """Return the names of the parameters an op takes."""
        return frozenset(
            leaf
            for key in op.operands
            if key >= 0
            for leaf in self.graph.values[key].leaves
            if not leaf.startswith("=")
        )

    def constants(self, op: GraphOp) -> tuple[tuple[str, ...], ...]:
        """Return what each constant operand is made from; empty for those that are data."""
        return tuple(self.graph.values[key].leaves if key >= 0 else () for key in op.operands)

    def roles(self, key: int) -> frozenset[str]:
        """Return what is done with a value next, looking through what gives it back unchanged."""
        return frozenset(self._roles(key, 4))

    def _roles(self, key: int, depth: int) -> Iterator[str]:
        if key in self._outputs:
            yield f"output {self._outputs[key]}"
        for op, position in self.takers.get(key, ()):
            if depth and passes_through(op):
                yield from self._roles(op.results[0], depth - 1)
            else:
                yield role_of(op, position)


def shapes_agree(one: GraphValue, other: GraphValue) -> bool:
    """Whether two values can have the same shape; -1 stands for any length."""
    if not one.dtype or not other.dtype:
        return True  # nothing is known about one of them
    return len(one.shape) == len(other.shape) and all(
        a == b or a < 0 or b < 0 for a, b in zip(one.shape, other.shape, strict=True)
    )
