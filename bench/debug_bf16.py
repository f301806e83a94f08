"""Introduced errors in bfloat16: the band they lie in, and ten of them computed another way.

    python bench/debug_bf16.py MODEL.json INPUTS.npz --seed 0

Runs the model in onednn_bf16 as ``tipcheck debug`` does and prints how the introduced ratios of
signal to noise are spread. Then it draws convolutions and products, takes their inputs as the
candidate really had them, and computes what should have become of them with numpy in float64 alone:
another route to the same number.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tipcheck
from tipcheck.backends.exports.parameters import read_parameters
from tipcheck.backends.tracing.execution import read_graph
from tipcheck.blame.align import align

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from tipcheck.backends.graph import Graph, GraphOp
    from tipcheck.blame.alignment import Pairing

    Array = npt.NDArray[np.float64]

MODE = "onednn_bf16"


def main() -> int:
    """Print the band and the drawn ops; exit with 1 when one of them does not agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10)
    options = parser.parse_args()
    table = tipcheck.debug(options.model, MODE, inputs=options.inputs)
    told = {
        row.tensor.value: row.introduced.measures.sqnr_db
        for row in table.rows
        if row.introduced and row.introduced.measures and row.introduced.measures.sqnr_db
    }
    finite = sorted(ratio for ratio in told.values() if np.isfinite(ratio))
    quarter = [finite[len(finite) * place // 4] for place in (1, 2, 3)]
    print(f"{len(told)} rows; introduced dB: lowest {finite[0]:.1f}, quartiles {quarter}")
    baseline = read_graph(options.model, "cpu_plain")
    candidate = read_graph(options.model, MODE)
    values = _values(options.model, options.inputs)
    weights = _weights(options.model)
    can = [
        pairing
        for pairing in align(baseline, candidate).pairings
        if pairing.candidate in told
        and len(pairing.inputs) >= 1
        and pairing.covers
        and baseline.ops[pairing.covers[0]].type in _STARTS
        and all(_plain(baseline.ops[at]) in _OPS for at in pairing.covers)
        and all(mine in values for mine, _ in pairing.inputs)
    ]
    random.Random(options.seed).shuffle(can)  # noqa: S311 - a draw, not a secret
    worst = 0.0
    for pairing in can[: options.count]:
        assert pairing.candidate is not None
        right = _compute(baseline, pairing, values, weights)
        actual = values[pairing.candidate]
        ratio = 10 * np.log10((right**2).sum() / ((right - actual) ** 2).sum())
        ours = told[pairing.candidate]
        worst = max(worst, abs(ratio - ours))
        ops = ", ".join(_plain(baseline.ops[at]) for at in pairing.covers)
        print(f"{ops:45} tipcheck {ours:6.2f} dB, numpy {ratio:6.2f} dB")
    print(f"largest difference: {worst:.4f} dB over {min(len(can), options.count)} ops")
    return 1 if worst > 0.01 or not can else 0


def _values(model: Path, inputs: Path) -> dict[int, Array]:
    with tipcheck.tensors(model, MODE, inputs=inputs) as tensors:
        return {
            tensor.value: np.array(values, np.float64)
            for tensor, values in tensors
            if values is not None
        }


def _weights(model: Path) -> Mapping[str, Any]:
    ops = json.loads(model.read_text())["program"]["regions"][0]["blocks"][0]["ops"]
    names = [op["A"][3] for op in ops if op["#"] == "p" and op["OA"][0]]
    return read_parameters(model.with_suffix(".pdiparams"), names)


def _plain(op: GraphOp) -> str:
    return op.type.rpartition(".")[2].rstrip("_")


def _compute(
    graph: Graph, pairing: Pairing, values: Mapping[int, Array], weights: Mapping[str, Any]
) -> Array:
    """Compute the ops of one pairing, one after the other."""
    known = {theirs: values[mine] for mine, theirs in pairing.inputs}
    own = {
        value: np.asarray(weights[name], np.float64)
        for name, value in graph.parameters.items()
        if name in weights
    }
    made: Array = np.zeros(0)
    for at in pairing.covers:
        op = graph.ops[at]
        taken = [known.get(key, own.get(key)) for key in op.operands if key >= 0]
        made = _OPS[_plain(op)](op, [item for item in taken if item is not None])
        known[op.results[0]] = made
    return made


def _conv(op: GraphOp, taken: list[Array]) -> Array:
    """Convolve by the definition: one shifted product for each place of the kernel."""
    image, kernel = taken
    up, side = op.attributes["strides"]
    high, wide = op.attributes["paddings"][0], op.attributes["paddings"][-1]
    groups = kernel.shape[0] if image.shape[1] != kernel.shape[1] and kernel.shape[1] == 1 else 1
    padded = np.pad(image, ((0, 0), (0, 0), (high, high), (wide, wide)))
    rows = (padded.shape[2] - kernel.shape[2]) // up + 1
    columns = (padded.shape[3] - kernel.shape[3]) // side + 1
    made = np.zeros((image.shape[0], kernel.shape[0], rows, columns))
    for y in range(kernel.shape[2]):
        for x in range(kernel.shape[3]):
            part = padded[:, :, y : y + up * rows : up, x : x + side * columns : side]
            tap = kernel[:, :, y, x]
            if groups > 1:
                made += part * tap[:, 0][None, :, None, None]
            else:
                made += np.einsum("nchw,oc->nohw", part, tap)
    return made


def _norm(op: GraphOp, taken: list[Array]) -> Array:
    image, mean, variance, scale, shift = taken
    wide = [item[None, :, None, None] for item in (mean, variance, scale, shift)]
    epsilon = float(np.float32(op.attributes["epsilon"]))
    made: Array = (image - wide[0]) / np.sqrt(wide[1] + epsilon) * wide[2] + wide[3]
    return made


_STARTS = ("pd_op.conv2d", "pd_op.depthwise_conv2d", "pd_op.matmul")
_OPS: dict[str, Callable[[GraphOp, list[Array]], Array]] = {
    "conv2d": _conv,
    "depthwise_conv2d": _conv,
    "batch_norm": _norm,
    "matmul": lambda _, taken: taken[0] @ taken[1],
    "add": lambda _, taken: taken[0] + taken[1],
    "relu": lambda _, taken: np.maximum(taken[0], 0),
    "hardswish": lambda _, taken: taken[0] * np.clip(taken[0] + 3, 0, 6) / 6,
}


if __name__ == "__main__":
    raise SystemExit(main())
