"""Mixed precision that really happens, and the count that proves it.

On a CPU, ``paddle.amp.auto_cast`` switches itself off in dygraph mode, with a warning nobody
reads: training passes and has tested nothing. Inside a function that ``to_static`` converts it
works, in bfloat16: so that is how this repository trains there. What ran in which precision is
afterwards read from Paddle's own operator statistics.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import paddle

# The line by which a training tells `tipcheck run` that it succeeded and tested nothing.
HOLLOW = "tipcheck: hollow: no op ran in low precision"

# Ops that move or make values and compute nothing: only casting is not mixed precision.
_NO_COMPUTATION = {
    "assign", "cast", "fill_constant", "full", "full_int_array", "full_like", "memcpy_d2h",
    "memcpy_h2d", "onednn_to_paddle_layout", "share_data", "transfer_dtype", "transfer_layout",
}  # fmt: skip


class MixedPrecision(paddle.nn.Layer):  # type: ignore[misc]
    """A network whose forward pass runs under auto_cast; what comes out is float32."""

    def __init__(self, net: Any, level: str, dtype: str) -> None:
        super().__init__()
        self.net = net
        self.level = level
        self.dtype = dtype

    def forward(self, image: Any) -> Any:
        """Return the logits."""
        with paddle.amp.auto_cast(enable=True, level=self.level, dtype=self.dtype):
            logits = self.net(image)
        return logits.astype("float32")


def keep_batch_norm_in_float32(net: Any) -> None:
    """Cast what goes into every BatchNorm back: on a CPU that op has no bfloat16 kernel."""
    for layer in net.sublayers():
        if isinstance(layer, paddle.nn.BatchNorm2D):
            layer.register_forward_pre_hook(_to_float32)


def _to_float32(_layer: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tensor.astype("float32") for tensor in inputs)


@dataclass
class OperatorCount:
    """How often each op ran, by precision. Paddle leaves the ``*_grad`` ops out of its statistics.

    Attributes:
        calls: op name to its calls in float16, bfloat16, float32 and anything else.
    """

    calls: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)

    def computing(self) -> dict[str, tuple[int, int, int, int]]:
        """Return the ops that compute something."""
        return {op: calls for op, calls in self.calls.items() if op not in _NO_COMPUTATION}

    def low(self) -> int:
        """Return how many computing ops ran in float16 or bfloat16."""
        return sum(calls[0] + calls[1] for calls in self.computing().values())

    def lines(self) -> Iterator[str]:
        """Write the table of ops and the summary."""
        yield f"[AMP] {'op':<32} float16 bfloat16 float32 other"
        for op, (half, brain, single, other) in sorted(self.computing().items()):
            yield f"[AMP] {op:<32} {half:>7} {brain:>8} {single:>7} {other:>5}"
        low = {op: calls[0] + calls[1] for op, calls in sorted(self.computing().items())}
        named = ", ".join(f"{op} {number}" for op, number in low.items() if number)
        single = sum(calls[2] for calls in self.computing().values())
        casts = sum(self.calls.get("cast", (0, 0, 0, 0)))
        yield (
            f"[AMP] ops in low precision: {self.low()}{f' ({named})' if named else ''}, "
            f"in float32: {single}; casts between them, not counted: {casts}"
        )
        if not self.low():
            yield "[AMP] This training tested nothing of mixed precision."
            yield HOLLOW


@contextlib.contextmanager
def count_operators() -> Iterator[OperatorCount]:
    """Count the ops that run inside, by Paddle's statistics (which it only offers to print)."""
    count = OperatorCount()
    paddle.amp.debugging.enable_operator_stats_collection()
    try:
        yield count
    finally:
        table = io.StringIO()
        with contextlib.redirect_stdout(table):
            paddle.amp.debugging.disable_operator_stats_collection()
        for line in table.getvalue().splitlines():
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) == 5 and all(cell.isdigit() for cell in cells[1:]):
                op = re.sub(r"^\w+\.", "", cells[0]).removesuffix("_")
                new = tuple(int(cell) for cell in cells[1:])
                old = count.calls.get(op, (0, 0, 0, 0))
                half, brain, single, other = (a + b for a, b in zip(old, new, strict=True))
                count.calls[op] = (half, brain, single, other)
