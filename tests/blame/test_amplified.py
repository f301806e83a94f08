"""Rounding that a network amplifies is told from what an op has done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tipcheck
from tests.blame.tables import measures, row, tensor
from tipcheck.blame.amplified import FAR, in_question
from tipcheck.blame.table import Introduced
from tipcheck.compare.verdict import Status

AWAY = measures(mismatched=5, max_abs_over_rms=2 * FAR, sqnr_db=70.0)


def test_only_rows_that_are_far_away_and_not_to_blame_are_in_question() -> None:
    guilty = Introduced(Status.FAIL, measures(sqnr_db=40.0), "float64", 118.2)
    half = tensor(4, dtype="bfloat16")
    asked = in_question(
        [
            row(3, propagated=AWAY),
            row(0),
            row(1, propagated=AWAY, introduced=guilty),
            row(2, propagated=AWAY, introduced=None),
            row(4, propagated=AWAY, tensor=half),
            row(5, propagated=AWAY, baseline=None),
            row(1, propagated=AWAY),
        ]
    )
    assert [one.tensor.op_index for one in asked] == [1, 3]


CANCELS = """
import sys
import numpy as np
import paddle
from paddle import nn

class Cancels(nn.Layer):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(256, 64), nn.Linear(64, 4, bias_attr=False)
        half = self.one.weight.numpy()[:, ::2]
        near = half + np.float32(1e-5) * np.abs(half).max()
        self.one.weight.set_value(np.stack([half, near], -1).reshape(256, 64))
        signs = np.tile(np.float32([[1.0], [-1.0]]), (32, 4))
        self.two.weight.set_value(signs)

    def forward(self, x):
        return self.two(self.one(x))

paddle.seed(3)
net = Cancels()
net.eval()
spec = paddle.static.InputSpec([None, 256], "float32", "x")
paddle.jit.save(net, sys.argv[1], input_spec=[spec])
"""


@pytest.mark.paddle
def test_a_row_that_rounding_drove_apart_says_how_far_both_sides_are(tmp_path: Path) -> None:
    script, model = tmp_path / "make.py", tmp_path / "cancels.json"
    script.write_text(CANCELS, encoding="utf-8")
    made = [sys.executable, str(script), str(model.with_suffix(""))]
    subprocess.run(made, check=True, capture_output=True)
    drawn = {"x": np.random.default_rng(5).standard_normal((8, 256), dtype=np.float32)}
    found = tipcheck.debug(model, "onednn_fp32", inputs=drawn)
    assert found.culprits == (), found.sentence
    far = in_question(found.rows)
    assert far, "the two sides round differently, and the second layer cancels all but that"
    assert all("dB from float64, the baseline" in one.note for one in far)
