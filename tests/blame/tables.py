"""A table with every kind of row, for the tests of what is made out of tables."""

from __future__ import annotations

import math

from tipcheck.backends.trace import TracedTensor
from tipcheck.blame.table import (
    Blamed,
    Introduced,
    OpRow,
    Probe,
    Table,
    TableCoverage,
    Unmatched,
)
from tipcheck.compare import compare_arrays
from tipcheck.compare.verdict import Measures, Side, Status


def tensor(index: int, op: str = "onednn_op.fused_conv2d", **changes: object) -> TracedTensor:
    given: dict[str, object] = {
        "index": index,
        "op_type": op,
        "name": f"0x55d0_inner_var_{index}",
        "layer_path": "/Net/Conv2D/",
        "dtype": "float32",
        "layout": "ONEDNN",
        "shape": (1, 64, 112, 112),
        "op_index": index,
        "value": index + 10,
    }
    return TracedTensor(**(given | changes))  # type: ignore[arg-type]


def side(low: float | None, high: float | None, nan: int = 0, inf: int = 0) -> Side:
    return Side(low, high, nan, inf, 0)


def measures(**changes: object) -> Measures:
    given: dict[str, object] = {
        "compared": 802816,
        "mismatched": 0,
        "max_abs": 1e-6,
        "max_abs_over_rms": 2e-6,
        "max_relative": 0.021647,
        "relative_floor": 1.0,
        "tolerance_used": 0.01,
        "sqnr_db": 128.44,
        "cosine": 1.0,
        "expected": side(-1.157185, 1.551287),
        "actual": side(-1.157186, 1.551287),
    }
    return Measures(**(given | changes))  # type: ignore[arg-type]


def row(index: int, status: Status = Status.PASS, **changes: object) -> OpRow:
    given: dict[str, object] = {
        "tensor": tensor(index),
        "baseline": tensor(index, "pd_op.batch_norm_", name=f"batch_norm_{index}.tmp_2"),
        "match": "fused op",
        "status": status,
        "propagated": measures(),
        "introduced": Introduced(Status.PASS, measures(sqnr_db=130.0), "float64", 118.2),
        "sample": 0,
        "note": "",
    }
    return OpRow(**(given | changes))  # type: ignore[arg-type]


def rows() -> tuple[OpRow, ...]:
    return (
        row(0),
        row(1, Status.FAIL, propagated=measures(mismatched=12, max_abs=0.5, sqnr_db=21.96)),
        row(2, Status.SUSPECT, propagated=measures(max_abs=2.5e-7, max_relative=1e-12)),
        row(3, propagated=measures(sqnr_db=math.inf, max_abs=0.0, max_relative=0.0)),
        row(
            4,
            Status.FAIL,
            propagated=measures(
                mismatched=7, compared=802809, actual=side(-1.0, 2.0, nan=7), sqnr_db=120.0
            ),
        ),
        row(5, Status.UNSUPPORTED, baseline=None, match="", propagated=None, introduced=None),
        row(6, tensor=tensor(6, name='odd "name", =SUM(A1)'), note="=1+1, with a comma"),
        row(7, propagated=measures(expected=side(1e-9, 3e12), actual=side(None, None))),
        row(8, baseline=tensor(8, shape=(64,)), propagated=None),
        row(9, propagated=measures(max_abs=math.inf, sqnr_db=-math.inf, max_relative=123456.789)),
    )


def table() -> Table:
    culprit = Blamed(
        1,
        "onednn_op.fused_conv2d",
        "0x55d0_inner_var_1",
        "/Net/Conv2D/",
        ("pd_op.conv2d:3",),
        ("conv2d_1.w_0",),
        84.5,
        "it introduces an error of its own",
    )
    outputs = compare_arrays({"y": [1.0, 2.0]}, {"y": [1.0, 2.5]})
    return Table(
        model="net.json",
        baseline_model="net.json",
        run_mode="onednn_fp32",
        baseline="cpu_plain",
        status=Status.FAIL,
        sentence="output y is not what the baseline gives; conv introduces an error",
        rows=rows(),
        culprits=(culprit,),
        outputs=outputs.tensors,
        unmatched=(Unmatched("pd_op.relu", "relu_0.tmp_0", "/Net/ReLU/", "fused away", "conv"),),
        coverage=TableCoverage(11, 10, 9, 8, 7, 802816, 2),
        probe=Probe(unchanged=True, memory_reuse=Status.PASS, reason="bit for bit the same"),
        thresholds={"float32": "129 dB"},
        versions={"paddlepaddle": "3.3.1"},
        notes=("the second sample is worse",),
    )
