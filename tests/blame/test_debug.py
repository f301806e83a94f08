"""The whole of debug on a small net, with real Paddle in its workers."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tipcheck
from tipcheck.blame.choice import Choice
from tipcheck.blame.debugging import investigate
from tipcheck.blame.question import Question, Sample
from tipcheck.blame.table import Table
from tipcheck.cli.debug import configure, run
from tipcheck.compare.verdict import Status
from tipcheck.errors import ToolError, UsageError
from tipcheck.report.debug_cells import sample_name

pytestmark = pytest.mark.paddle


def ask(nets: Path, name: str = "good", mode: str = "onednn_fp32", **changes: Any) -> Table:
    sample = Sample("image", nets / "image.npz")
    question = Question(
        nets / f"{name}.json", mode, (sample,), baseline_model=nets / "good.json", memory_run=False
    )
    return investigate(replace(question, **changes))


def test_without_a_fault_nobody_is_blamed(nets: Path) -> None:
    found = ask(nets)
    assert found.status is Status.PASS, found.sentence
    assert found.culprits == ()
    assert found.coverage.matched == found.coverage.chosen == found.coverage.replayed
    assert found.probe.unchanged
    assert all(
        row.introduced and row.introduced.reference == "float64"
        for row in found.rows
        if row.match != "values only moved"
    )


@pytest.mark.parametrize(
    ("name", "ops", "parameter"),
    [
        ("scaled", "pd_op.conv2d", "conv2d_1.w_0"),
        ("nan", "pd_op.conv2d", "conv2d_1.w_0"),
        ("epsilon", "pd_op.batch_norm_", "batch_norm2d_0.w_0"),
    ],
)
def test_the_op_that_is_broken_is_named_and_no_other(
    nets: Path, name: str, ops: str, parameter: str
) -> None:
    found = ask(nets, name)
    assert found.status is not Status.PASS
    assert len(found.culprits) == 1, found.sentence
    culprit = found.culprits[0]
    assert any(item.startswith(f"{ops}:") for item in culprit.covers)
    assert parameter in culprit.parameters
    worse = [row for row in found.rows if row.propagated and row.propagated.mismatched]
    assert worse[-1].status is Status.PASS  # inherits, and is not blamed


def test_looking_at_a_few_tensors_finds_it_too_and_then_looks_closer(nets: Path) -> None:
    found = ask(nets, "scaled", "cpu_ir", choice=Choice(every=3))
    assert found.coverage.chosen < found.coverage.tensors + 3
    first = found.culprits[0]
    assert "conv2d_1.w_0" in first.parameters
    assert all(item.startswith("pd_op.conv2d") for item in first.covers)


def test_bfloat16_makes_the_error_that_bfloat16_explains(nets: Path) -> None:
    found = ask(nets, mode="onednn_bf16")
    if "doctor" in found.sentence:
        pytest.skip("this CPU has no bfloat16")
    assert found.culprits == ()
    reached = [
        row.introduced.measures.sqnr_db
        for row in found.rows
        if row.introduced and row.introduced.measures and row.tensor.op_type.endswith("conv2d")
    ]
    assert reached
    assert all(ratio is not None and 40 < ratio < 65 for ratio in reached)


def test_a_golden_file_takes_the_place_of_the_baseline(nets: Path, tmp_path: Path) -> None:
    golden = tmp_path / "golden.npz"
    tipcheck.save_golden(nets / "good.json", golden, inputs=nets / "image.npz")
    found = tipcheck.debug(nets / "good.json", baseline=str(golden))
    assert found.status is Status.PASS, found.sentence
    assert found.coverage.replayed > 0
    other = tipcheck.debug(
        nets / "scaled.json", baseline=str(golden), baseline_model=nets / "good.json"
    )
    assert "conv2d_1.w_0" in other.culprits[0].parameters
    elsewhere = tipcheck.debug(nets / "epsilon.json", baseline=str(golden))
    assert "recorded from another export" in " ".join(elsewhere.notes)
    assert elsewhere.culprits == ()


def test_the_users_own_check_sees_every_pair(nets: Path) -> None:
    seen = []

    def check(mine: Any, theirs: Any, values: Any, baseline: Any) -> str | None:
        seen.append((mine.op_type, values.shape == baseline.shape))
        return "too large" if np.abs(values).max() > 1e-9 else None

    found = tipcheck.debug(nets / "good.json", inputs=nets / "image.npz", check=check, replay=False)
    assert len(seen) == found.coverage.judged
    assert all(same for _, same in seen)
    assert found.rows[0].note == "too large"
    assert found.coverage.replayed == 0


def test_several_samples_and_the_worst_is_shown(nets: Path) -> None:
    tame = np.zeros((1, 3, 12, 12), np.float32)
    wild = np.random.default_rng(1).standard_normal((1, 3, 12, 12), dtype=np.float32)
    found = tipcheck.debug(
        nets / "scaled.json",
        baseline_model=nets / "good.json",
        inputs=[{"image": tame}, {"image": wild}],
    )
    assert found.coverage.samples == 2
    assert {row.sample for row in found.rows} == {0, 1} or found.rows[-1].sample == 1
    assert len(found.samples) == 2
    assert {sample_name(found, row) for row in found.rows} <= set(found.samples)


def test_a_trace_and_its_values(nets: Path) -> None:
    told = tipcheck.trace(nets / "good.json", inputs=nets / "image.npz")
    with tipcheck.tensors(nets / "good.json", inputs=nets / "image.npz") as tensors:
        shapes = [values.shape for _, values in tensors if values is not None]
    assert len(shapes) <= len(told.tensors)
    assert (2, 8, 12, 12) in shapes


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    configure(parser)
    return run(parser.parse_args(list(arguments)))


def test_the_command_writes_its_files_and_exits_with_the_verdict(
    nets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model, image = str(nets / "good.json"), str(nets / "image.npz")
    assert command(model, "--input", image) == 0
    assert (tmp_path / "output.xlsx").exists()
    broken = str(nets / "scaled.json")
    arguments = [broken, "--baseline-model", model, "--input", image, "--json", "t.json"]
    assert command(*arguments) == 1
    told = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert told["schema"] == "tipcheck.table/1"
    assert "introduces an error" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "which model"),
        (("nothing.json",), "cannot be read"),
        (("{good}", "--params_file", "nothing.pdiparams"), "nothing.pdiparams are missing"),
        (("{good}", "--params_file", "{good}"), "is no whole parameter file"),
        (("{good}", "--input", "{good}"), "is no sample"),
        (("{good}", "--input", "nowhere"), "is not there"),
        (("{good}", "--shape", "image=1,2,3"), "cannot have shape"),
        (("{good}", "--shape", "pixels=1"), "no input 'pixels'"),
        (("{good}", "--run-mode", "fast"), "no run mode"),
        (("{good}", "--memory", "much"), "is no size"),
        (("{good}", "--check", "nothing:nobody"), "cannot be imported"),
        (("{good}", "--tensors", "{good}.txt"), "cannot be read as names"),
        (("{good}", "--baseline", "none.npz"), "cannot be read as a golden file"),
        (("{good}", "--xlsx", "nowhere/t.xlsx"), "its folder does not exist"),
        (("{cut}",), "is no program"),
        (("{good}", "--input", "{torn}"), "it is no .npz archive"),
        (("{good}", "--run-mode", "onednn_int8"), "put no op of this model into int8"),
    ],
)
def test_what_a_user_can_do_wrong_is_said_before_anything_runs(
    nets: Path, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text((nets / "good.json").read_text(encoding="utf-8")[:700], encoding="utf-8")
    torn = tmp_path / "torn.npz"
    torn.write_bytes((nets / "image.npz").read_bytes()[:300])
    places = {"good": str(nets / "good.json"), "cut": str(cut), "torn": str(torn)}
    with pytest.raises(UsageError, match=told):
        command(*(item.format(**places) for item in arguments))


@pytest.mark.parametrize("option", ["--run-mode", "--baseline"])
@pytest.mark.parametrize("mode", ["gpu_fp32", "trt_int8"])
def test_a_mode_that_is_not_here_is_the_environments_fault(
    nets: Path, option: str, mode: str
) -> None:
    if "paddlepaddle-gpu" in {one.name for one in metadata.distributions()}:
        pytest.skip("this is a GPU build")
    with pytest.raises(
        ToolError, match=rf"^{mode}: not here: .*; install paddlepaddle-gpu"
    ) as told:
        command(str(nets / "good.json"), option, mode)
    assert told.value.exit_code == 3


def test_a_result_that_cannot_be_written_is_kept_elsewhere(
    nets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> None:
        raise ToolError("cannot be written (No space left on device)", where="t.json")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("tipcheck.report.debug_files.write_csv", fail)
    monkeypatch.chdir(tmp_path)
    arguments = [str(nets / "good.json"), "--run-mode", "cpu_ir", "--no-replay"]
    with pytest.raises(ToolError, match=r"No space left.*the table is kept in") as told:
        command(*arguments, "--csv", "t.csv", "--json", "t.json")
    kept = Path(str(told.value).rpartition(" ")[2])
    assert json.loads(kept.read_text(encoding="utf-8"))["complete"]
    assert (tmp_path / "t.json").exists()
    assert "tensors matched" in capsys.readouterr().out


CRASHING = """
import sys
import paddle
from paddle import nn

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.one, self.up = nn.Conv2D(3, 4, 3, padding=1), nn.Upsample(scale_factor=2)

    def forward(self, image):
        return self.up(self.one(image))

paddle.seed(7)
net = Net()
net.eval()
spec = paddle.static.InputSpec([None, 3, 8, 8], "float32", "image")
paddle.jit.save(net, sys.argv[1], input_spec=[spec])
"""


def test_a_mode_that_raises_in_the_middle_is_a_verdict(tmp_path: Path) -> None:
    script, model = tmp_path / "make.py", tmp_path / "up.json"
    script.write_text(CRASHING, encoding="utf-8")
    made = [sys.executable, str(script), str(model.with_suffix(""))]
    subprocess.run(made, check=True, capture_output=True)
    drawn = {"image": np.ones((1, 3, 8, 8), np.float32)}
    found = tipcheck.debug(model, "onednn_fp32", inputs=drawn)
    if found.status is Status.PASS:
        pytest.skip("this Paddle runs it")
    assert found.status is Status.CRASH
    assert not found.complete
    assert "onednn_op.nearest_interp:" in found.sentence
    assert "onednn_placement_pass" in found.sentence
    assert "--run-mode cpu_ir" in found.sentence


OLD_SCRIPT = """
import sys
import numpy as np
from paddle import inference
from tipcheck import precision_debug as script
from tipcheck.errors import UsageError

model = sys.argv[1]
image = np.load(sys.argv[2])["image"]

def once(predictor, hook):
    predictor.register_output_hook(hook)
    predictor.get_input_handle("image").copy_from_cpu(image)
    predictor.run()

once(script.init_baseline_predictor(model_file=model), script.save_baseline_hook)
names = script.check_diff_tensor_names
assert names and set(script.check_diff_tensor2op) == set(names)
script.assign_mark_names(names[0], names[-1])
assert script.check_diff_mark_tensor_names == names
try:
    script.assign_mark_names("nobody", names[0])
except UsageError as error:
    print("refused:", error)
script.check_diff_mark_tensor_names.clear()
again = script.init_baseline_predictor(model_file=model)
# Paddle 3 calls an inner tensor something else in every predictor. Ops keep their order, the
# outputs of one op do not: those of a batch norm are parameters, whose names stay.
inner = iter([name for name in names if "_inner_var_" in name])

def same(name):
    return next(inner) if "_inner_var_" in name else name

once(again, lambda op, name, tensor: script.assert_tensor_close_hook(op, same(name), tensor))
"""


def test_the_names_of_the_example_script_still_work(nets: Path) -> None:
    script = OLD_SCRIPT + (
        "\nchecked = script.check_diff_mismatch_tensors_info\n"
        "assert len(checked) == len(names), (len(checked), len(names))\n"
        "assert all(item.verdict.status.value == 'PASS' for item in checked)\n"
        "script.reset()\nassert not names\nprint('done')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, str(nets / "good.json"), str(nets / "image.npz")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "refused: the baseline has no tensor 'nobody'" in ended.stdout, ended.stderr[-2000:]
    assert ended.stdout.endswith("done\n"), ended.stderr[-2000:]


OWN_BASELINE = """
import sys
import paddle
from paddle import inference, nn
import tipcheck
from tipcheck.errors import UsageError

folder = sys.argv[1]
config = inference.Config(f"{folder}/good.json", f"{folder}/good.pdiparams")
config.switch_ir_optim(False)
config.disable_onednn()
found = tipcheck.debug(f"{folder}/good.json", baseline=config, inputs=f"{folder}/image.npz")
print(found.status.value, found.coverage.judged > 5, found.coverage.replayed > 5)

class Double(nn.Layer):
    def forward(self, image):
        return image * 2.0 + 1.0

layer = Double()
spec = paddle.static.InputSpec([None, 4], "float32", "image")
paddle.jit.save(layer, f"{folder}/double", input_spec=[spec])
found = tipcheck.debug(f"{folder}/double.json", baseline=layer)
print(found.status.value, found.baseline_model.endswith("layer.json"))
try:
    tipcheck.debug(f"{folder}/double.json", baseline=7)
except UsageError as error:
    print("refused:", error)
"""


def test_a_config_and_a_layer_of_the_users_own(nets: Path, tmp_path: Path) -> None:
    for file in nets.glob("good.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "image.npz").write_bytes((nets / "image.npz").read_bytes())
    script = tmp_path / "own.py"
    script.write_text(OWN_BASELINE, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert "PASS True True\nPASS True\nrefused: a int is no baseline" in ended.stdout, (
        ended.stdout + ended.stderr[-2000:]
    )
