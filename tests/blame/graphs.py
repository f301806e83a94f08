"""A small network as a graph: conv, norm and relu, a branch, and a linear layer at the end."""

from __future__ import annotations

from tipcheck.backends.graph import Graph, GraphOp, GraphValue

OPS = (
    ("pd_op.conv2d", (0, 1), 3, "/Net/Conv2D/"),
    ("pd_op.batch_norm_", (3, 2), 4, "/Net/BatchNorm2D/"),
    ("pd_op.relu", (4,), 5, "/Net/ReLU/"),
    ("pd_op.pool2d", (5,), 6, "/Net/Pool/"),
    ("pd_op.add", (6, 5), 7, "/Net/"),
    ("pd_op.matmul", (7, 8), 9, "/Net/Head/Linear/"),
)
LEAVES = {1: "conv.w", 2: "norm.w", 8: "head.w"}


def network() -> Graph:
    values = [GraphValue(0, "x", "float32", (-1, 3), -1)]
    producers = {result: at for at, (_, _, result, _) in enumerate(OPS)}
    for key in range(1, 10):
        name = LEAVES.get(key, f"t{key}")
        leaves = (LEAVES[key],) if key in LEAVES else ()
        values.append(GraphValue(key, name, "float32", (-1, 3), producers.get(key, -1), leaves))
    ops = tuple(
        GraphOp(at, kind, operands, (result,), {}, path, at + 4)
        for at, (kind, operands, result, path) in enumerate(OPS)
    )
    parameters = {name: key for key, name in LEAVES.items()}
    return Graph("net.json", "cpu_plain", "pir", tuple(values), ops, {"x": 0}, (9,), parameters)
