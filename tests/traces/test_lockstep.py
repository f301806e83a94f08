"""Real models are traced, aligned and compared, and what goes wrong on the way is said."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from tipcheck.backends.trace import TracedTensor
from tipcheck.backends.tracing.execution import Execution, graph_of, read_graph, trace, values
from tipcheck.backends.tracing.run_modes import PLAIN, ModeSettings, default_baseline
from tipcheck.backends.tracing.session import DiedError
from tipcheck.blame.align import align
from tipcheck.blame.alignment import Reason
from tipcheck.blame.lockstep import Choice, Lockstep, SideBySide, side_by_side
from tipcheck.compare.judge import Rules
from tipcheck.errors import ToolError, UsageError

pytestmark = pytest.mark.paddle
ROOT = Path(__file__).parents[2]


def floating(tensor: TracedTensor) -> bool:
    return tensor.dtype.startswith(("float", "bfloat"))


def check(run: SideBySide, result: Lockstep, *, at_least: int, within: float) -> None:
    """Every floating tensor has a partner or a reason, and no partner is a wrong one."""
    assert result.complete, result.stopped_by
    partners = run.alignment.partners
    shown = [tensor for tensor in result.candidate.tensors if floating(tensor)]
    assert len(shown) >= at_least
    reasons = {row.candidate: row.reason for row in run.alignment.pairings}
    lost = [
        tensor
        for tensor in shown
        if tensor.value not in partners
        and reasons.get(tensor.value, Reason.UNKNOWN) is Reason.UNKNOWN
    ]
    assert lost == []
    far = {}
    for row in result.rows:
        if "whose parts are never shown" in row.why_not:
            continue
        assert row.verdict is not None, row.why_not
        measures = row.verdict.measures
        assert measures is not None, row.verdict.reason
        if (measures.max_abs_over_rms or 0.0) > within:
            far[row.candidate and row.candidate.op_type] = measures.max_abs_over_rms
    assert far == {}


def compared(model: Path, run_mode: str) -> tuple[SideBySide, Lockstep]:
    inputs = (model.parent if model.suffix == ".json" else model.parent.parent) / "mobilenet.npz"
    inputs = model.with_suffix(".npz") if model.with_suffix(".npz").exists() else inputs
    with side_by_side(
        Execution(model, default_baseline(run_mode)), Execution(model, run_mode), inputs
    ) as run:
        return run, run.compare(inputs, Rules())


@pytest.mark.parametrize(
    ("name", "run_mode", "at_least"),
    [
        ("mobilenet.json", "onednn_fp32", 77),
        ("older/mobilenet.pdmodel", "onednn_fp32", 92),
        ("older/mobilenet.pdmodel", "cpu_ir", 100),
        ("vit.json", "onednn_fp32", 60),
        ("lstm.json", "onednn_fp32", 10),
    ],
)
def test_an_optimised_program_is_matched_tensor_by_tensor(
    models: Path, name: str, run_mode: str, at_least: int
) -> None:
    run, result = compared(models / name, run_mode)
    check(run, result, at_least=at_least, within=1e-3)
    (ours, theirs) = next(iter(result.outputs.values()))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_bfloat16_is_decoded_and_judged_as_such(models: Path) -> None:
    if "avx512" not in Path("/proc/cpuinfo").read_text("utf-8"):
        pytest.skip("this CPU has no AVX-512")
    run, result = compared(models / "vit.json", "onednn_bf16")
    assert "bfloat16" in Counter(tensor.dtype for tensor in result.candidate.tensors)
    check(run, result, at_least=60, within=0.2)
    assert all(row.verdict.threshold is None or row.verdict.threshold.rtol == 1e-2
               for row in result.rows if row.verdict)  # fmt: skip


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_other_runtimes_are_matched_too(models: Path, runtime: str) -> None:
    pytest.importorskip("paddle2onnx")
    pytest.importorskip(runtime)
    run, result = compared(models / "mobilenet.json", runtime)
    check(run, result, at_least=150, within=1e-3)


def test_ground_truth_of_the_older_format(models: Path) -> None:
    """Names are stable there; alignment does not look at them, so they can judge it."""
    model = models / "older" / "mobilenet.pdmodel"
    baseline, candidate = read_graph(model, PLAIN), read_graph(model, "onednn_fp32")
    right = [
        candidate.values[one].name == baseline.values[other].name
        for one, other in align(baseline, candidate).partners.items()
        if candidate.values[one].floating
    ]
    assert len(right) >= 92
    assert all(right)


def test_values_equal_those_of_the_program_replayed_pass_by_pass(
    models: Path, tmp_path: Path
) -> None:
    model, inputs = models / "lstm.json", models / "lstm.npz"
    execution = Execution(model, "onednn_fp32")
    with execution.start() as session:
        names = [record.name for record in graph_of(session).passes]
    (tmp_path / "passes.json").write_text(json.dumps(names), "utf-8")
    script = [sys.executable, "-W", "ignore", str(ROOT / "bench" / "pass_replay.py")]
    places = [model, inputs, tmp_path / "passes.json", tmp_path / "replayed.npz"]
    subprocess.run([*script, *map(str, places)], check=True, capture_output=True, timeout=600)
    with np.load(tmp_path / "replayed.npz") as arrays:
        replayed = {name.split(":")[1]: arrays[name] for name in arrays.files}
    equal = 0
    for tensor, array in values(execution, inputs):
        other = replayed.get(tensor.op_type)
        if other is not None and array is not None and other.shape == array.shape:
            np.testing.assert_array_equal(array, other)
            equal += 1
    assert equal >= 5


def test_a_trace_says_what_was_seen_and_only_that(models: Path) -> None:
    seen = trace(models / "lstm.json", "onednn_fp32", models / "lstm.npz")
    kinds = [tensor.op_type for tensor in seen.tensors]
    assert kinds[0] == "pd_op.embedding"
    assert "pd_op.rnn_" in kinds
    assert {tensor.layout for tensor in seen.tensors} == {"NCHW", "ONEDNN"}
    assert [tensor.index for tensor in seen.tensors] == list(range(len(kinds)))
    assert seen.tensors[0].layer_path == "/Embedding/"


def test_only_what_was_chosen_is_compared_and_memory_is_bounded(models: Path) -> None:
    model, inputs = models / "mobilenet.json", models / "mobilenet.npz"
    with side_by_side(Execution(model, PLAIN), Execution(model, "onednn_fp32")) as run:
        chosen = frozenset(list(run.alignment.partners)[1:6])
        done: list[int] = []
        result = run.compare(
            inputs, Rules(), Choice(chosen, memory=1), lambda key, _: done.append(key)
        )
        assert {row.pairing.candidate for row in result.rows} == chosen
        assert sorted(done) == sorted(chosen)
        ours, theirs = run.run(inputs)
    for name, (one, other) in result.outputs.items():
        np.testing.assert_array_equal(one, ours[name])
        np.testing.assert_array_equal(other, next(iter(theirs.values())))


@pytest.mark.parametrize("run_mode", ["gpu_fp16", "trt_fp32"])
def test_a_mode_that_is_not_here_says_so(models: Path, run_mode: str) -> None:
    if "paddlepaddle-gpu" in {one.name for one in metadata.distributions()}:
        pytest.skip("this is a GPU build")
    with pytest.raises(ToolError, match=rf"{run_mode}: not here: .*CPU build"):
        read_graph(models / "mobilenet.json", run_mode, inputs=models / "mobilenet.npz")


def test_int8_without_scales_is_refused(models: Path) -> None:
    with pytest.raises((UsageError, ToolError), match=r"int8 needs scales|not here"):
        read_graph(models / "mobilenet.json", "trt_int8")


def test_files_that_are_no_models_are_refused(models: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        read_graph(tmp_path / "gone.json", PLAIN)
    cut = tmp_path / "cut.pdmodel"
    cut.write_bytes((models / "older" / "mobilenet.pdmodel").read_bytes()[:999])
    (tmp_path / "cut.pdiparams").write_bytes(b"")
    with pytest.raises((UsageError, DiedError)):
        read_graph(cut, PLAIN)
    foreign = tmp_path / "foreign.json"
    foreign.write_text('{"hello": 1}', "utf-8")
    (tmp_path / "foreign.pdiparams").write_bytes(b"")
    with pytest.raises(UsageError, match="is no program that"):
        read_graph(foreign, PLAIN)
    alone = tmp_path / "alone.json"
    alone.write_bytes((models / "mobilenet.json").read_bytes())
    with pytest.raises(UsageError, match=r"alone\.pdiparams are missing"):
        read_graph(alone, PLAIN)
    elsewhere = ModeSettings(params=str(models / "mobilenet.pdiparams"))
    assert read_graph(alone, PLAIN, elsewhere).ops


def test_inputs_that_do_not_fit_are_refused(models: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.npz"
    np.savez(other, picture=np.zeros((1, 3, 64, 64), "float32"))
    with pytest.raises(UsageError, match=r"no input 'image'.*the model takes image"):
        trace(models / "mobilenet.json", PLAIN, other)
    np.savez(other, image=np.zeros((1, 3, 64, 64), "float64"))
    with pytest.raises(UsageError, match=r"'image' is float64.*float32"):
        trace(models / "mobilenet.json", PLAIN, other)
    np.savez(other, image=np.zeros((1, 4, 64, 64), "float32"))
    with pytest.raises(UsageError, match=r"'image' has shape \[1, 4, 64, 64\].*\[any, 3, 64, 64\]"):
        trace(models / "mobilenet.json", PLAIN, other)


NET = """
import paddle

class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = paddle.nn.Conv2D(3, 8, 3), paddle.nn.BatchNorm2D(8)
        self.act, self.head = paddle.nn.ReLU(), paddle.nn.Linear(8, 5)

    def forward(self, x):
        x = self.act(self.norm(self.conv(x)))
        return self.head(x.mean([2, 3]) * 2)
"""


def test_a_layer_is_traced_and_compared_sub_layer_by_sub_layer(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NET, "utf-8")
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, x=np.random.default_rng(0).standard_normal((2, 3, 9, 9), dtype=np.float32))
    layer = Execution(tmp_path / "net.py:Net", "dygraph")
    seen = [tensor for tensor, _ in values(layer, inputs)]
    assert [tensor.op_type for tensor in seen] == ["Conv2D", "BatchNorm2D", "ReLU", "Linear"]
    assert [tensor.layer_path for tensor in seen] == [
        "/Conv2D/",
        "/BatchNorm2D/",
        "/ReLU/",
        "/Linear/",
    ]
    with pytest.raises(UsageError, match=r"has no 'Missing'.*FILE.py:NAME"):
        list(values(Execution(tmp_path / "net.py:Missing", "dygraph"), inputs))


def test_after_an_interruption_what_was_compared_is_kept(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = models / "mobilenet.json", models / "mobilenet.npz"

    waits = iter([KeyboardInterrupt])

    def interrupted(*_: object, **__: object) -> None:
        for error in waits:
            raise error

    with side_by_side(Execution(model, PLAIN), Execution(model, "onednn_fp32")) as run:
        monkeypatch.setattr("tipcheck.blame.lockstep.wait", interrupted)
        result = run.compare(inputs, Rules())
    assert not result.complete
    assert result.stopped_by == "interrupted"
    assert result.outputs == {}
