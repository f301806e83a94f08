"""Which values of a program stand in another axis order than in the export it was made from.

Paddle lets parts of a convolutional network run channels last, also with every optimisation off: it
puts a transposition on either side and changes what lies between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tipcheck.backends.graph import Graph

TRANSPOSE = "transpose"


def orientations(graph: Graph) -> dict[int, tuple[int, ...]]:
    """Return, for values that a pass has turned, the axes that turn the exported value into them.

    An op that does not turn its operand hands the order on.
    """
    axes: dict[int, tuple[int, ...]] = {}
    for op in graph.ops:
        if not op.operands or op.operands[0] < 0:
            continue
        before = axes.get(op.operands[0])
        if op.source < 0 and plain_type(op.type) == TRANSPOSE:
            perm = tuple(int(axis) for axis in op.attributes.get("perm", ()))
            after = tuple(before[axis] for axis in perm) if before else perm
        else:
            after = before or ()
        if after == tuple(range(len(after))):
            continue
        for value in op.results:
            if len(graph.values[value].shape) == len(after):
                axes[value] = after
    return axes


def plain_type(op_type: str) -> str:
    """Return an op type without its dialect and without the mark of working in place."""
    return op_type.rpartition(".")[2].rstrip("_")
