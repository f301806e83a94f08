"""``tipcheck.verify`` in the user's own process, with a layer in hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.stage_ladder.conftest import HERE

pytestmark = pytest.mark.paddle

PROGRAM = """
import random, sys
import numpy as np, paddle
import tipcheck
from tipcheck.errors import UsageError
from layers import Mixed, Plain, TwoWays, mixed

stages = ["eager", "to_static", "executor", "inference"]
spec = [paddle.static.InputSpec([None, 8], "float32", "x")]
layer = Plain()
layer.train()
before = {name: value.numpy().copy() for name, value in layer.state_dict().items()}
state = random.getstate(), np.random.get_state()[2], str(paddle.get_rng_state()[0]).split()[:3]
report = tipcheck.verify(layer, spec=spec, stages=stages)
assert report and report.good and report.result.compared == 4, str(report)
report.check()
assert layer.training and layer.head.training
assert all((value.numpy() == before[name]).all() for name, value in layer.state_dict().items())
assert state == (
    random.getstate(), np.random.get_state()[2], str(paddle.get_rng_state()[0]).split()[:3]
)
assert report.result.facts["training"] == "True"

feed = {"x": np.random.default_rng(0).standard_normal((5, 8)).astype("float32")}
one = tipcheck.verify(layer, feed, spec=spec, stages=stages)
assert [note.name for note in one.result.sets] == ["inputs 0"]
assert tipcheck.verify(layer, lambda: [feed, feed], spec=spec, stages=stages[2:])

broken = tipcheck.verify(TwoWays(), spec=spec, stages=stages)
assert not broken and broken.result.first_break == "to_static"
try:
    broken.check()
except AssertionError as error:
    assert "when the layer is traced" in str(error) and "to_static" in str(error)
else:
    raise SystemExit("it passed")

net, nested = mixed()
assert tipcheck.verify(net, spec=nested, stages=stages)
converted = paddle.jit.to_static(Plain(), input_spec=spec, full_graph=True)
assert tipcheck.verify(converted, stages=stages), "the specs of the conversion are enough"

for bad in (3, Plain()):
    try:
        tipcheck.verify(bad)
    except UsageError as error:
        print(error)
for bad in (feed["x"], [feed["x"]], [feed, 3]):
    try:
        tipcheck.verify(layer, bad, spec=spec, stages="eager,executor")
    except UsageError as error:
        print(error)
paddle.jit.save(layer.eval() or layer, sys.argv[1] + "/net", input_spec=spec)
assert tipcheck.verify(sys.argv[1] + "/net", feed, stages="executor, inference", allow="suspect")
print("well")
"""


def test_a_layer_in_hand(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    said = ran.stdout.splitlines()
    assert said[-1] == "well"
    assert "a int is neither a layer nor a path" in ran.stdout
    assert "Plain does not say what it takes" in ran.stdout
    assert ran.stdout.count("inputs hold a ndarray, which says no names") == 2
    assert "inputs hold a int, which says no names; give {'name': array" in ran.stdout
