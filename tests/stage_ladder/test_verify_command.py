"""``tipcheck verify`` with real Paddle: exports, layers, inputs of the user, files, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tipcheck import wire
from tipcheck.backends.exports.program import read_program
from tipcheck.backends.inputs.drawn import make_sets
from tipcheck.backends.subject import Subject, save_subject
from tipcheck.cli.main import main
from tipcheck.compare.verdict import Status
from tipcheck.stage_ladder import LadderResult

pytestmark = pytest.mark.paddle

FEW = ["--stages", "executor,inference,inference_ir", "--kinds", "normal,ties"]


def result_of(path: Path) -> LadderResult:
    return wire.loads(path.read_text(encoding="utf-8"), LadderResult, source=str(path))


def test_an_export_with_every_stage(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--json", str(tmp_path / "a.json"), "--junit", str(tmp_path / "new" / "a.xml")]
    assert main(["verify", str(export), *files]) == 0
    shown = capsys.readouterr().out
    assert "PASS  the answers are the same at" in shown
    assert "UNSUPPORTED onednn_int8: the model is not quantised" in shown
    assert "says nothing: all inputs are zero" in shown
    assert "could pass unseen" in shown
    result = result_of(tmp_path / "a.json")
    rungs = {rung.stage: rung for rung in result.rungs}
    assert rungs["inference"].spread == rungs["inference"].spread_fresh == 0.0
    assert {check.name for check in rungs["onednn"].state} >= {"run N", "clone", "two threads"}
    assert all(check.status is Status.PASS for check in rungs["onednn"].state)
    assert rungs["onednn"].referee_db is not None
    assert rungs["onednn"].referee_db > 100
    assert not any(rungs[name].status is Status.PASS for name in ("gpu", "trt_fp16"))
    suite = ET.parse(tmp_path / "new" / "a.xml").getroot()[0]  # noqa: S314 - our own
    assert suite.get("failures") == suite.get("errors") == "0"
    assert int(suite.get("skipped", "0")) > 3


def test_a_layer_whose_export_takes_another_way(
    layers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    chosen = ["--stages", "eager,to_static,executor,inference", "--kinds", "normal"]
    code = main(["verify", f"{layers}:two_ways", *chosen, "--json", str(path)])
    shown = capsys.readouterr().out
    assert code == 1
    assert "when the layer is traced into a program" in shown
    assert result_of(path).first_break == "to_static"
    assert result_of(path).facts["layer"] == "TwoWays"


def test_nested_inputs_rows_that_mix_and_outputs_of_all_kinds(layers: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    chosen = "eager,to_static,jit_load,executor,inference,inference_ir"
    assert main(["verify", f"{layers}.py:mixed", "--stages", chosen, "--json", str(path)]) == 0
    result = result_of(path)
    assert result.compared == 6
    checks = {check.name: check for check in result.rungs[-1].state}
    assert "depend on each other" in checks["batch 1"].reason
    assert checks["clone"].status is Status.PASS
    assert result.rungs[1].bottom is not None
    assert result.rungs[1].bottom.outputs >= 4 * 8


def test_inputs_of_the_user(
    export: Path, rows: Path, layers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(export.parent), *FEW[:2], "--input", str(rows)]) == 0
    assert "inputs: rows.npz" in capsys.readouterr().out
    assert main(["verify", str(export), *FEW[:2], "--inputs", "layers:inputs"]) == 0
    assert "layers:inputs 1" in capsys.readouterr().out
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.full((1, 8), number, np.float32))
    images = ["--images", str(tmp_path), "--most", "2"]
    assert main(["verify", str(export), *FEW[:2], *images, "--preprocess", "layers:prepare"]) == 0
    shown = capsys.readouterr().out
    assert "inputs: 1.npy" in shown
    assert "0.npy: says nothing: all inputs are zero" in shown
    assert main(["verify", str(export), *images, "--preprocess", "layers:prepare_nothing"]) == 2
    assert "gives no inputs (ValueError: cannot read this)" in capsys.readouterr().err


def test_a_folder_with_a_subject(export: Path, tmp_path: Path) -> None:
    specs = read_program(export).inputs
    sets = make_sets(specs, tmp_path, kinds=["normal"])
    save_subject(Subject("caught", str(export), specs, sets), tmp_path)
    assert main(["verify", str(tmp_path), *FEW[:2]]) == 0


def test_a_stage_that_cannot_run_here_fails_only_when_asked_for(
    export: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(export), "--stages", "executor,inference,onednn_int8"]) == 1
    assert "onednn_int8 was asked for and cannot run here" in capsys.readouterr().out


def test_parameters_that_were_cut_off_or_are_of_another_export(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Paddle itself loads a file that was cut off, and computes with what the memory held."""
    model = tmp_path / export.name
    shutil.copy(export, model)
    whole = export.with_suffix(".pdiparams").read_bytes()
    for held, told in ((100, "ends in tensor"), (0, "holds 0 tensors"), (7, "ends too early")):
        model.with_suffix(".pdiparams").write_bytes(whole[:held])
        assert main(["verify", str(model), *FEW]) == 2
        assert told in capsys.readouterr().err


def test_no_answer_from_constant_outputs(layers: str, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--stages", "eager,executor,inference", "--kinds", "normal"]
    assert main(["verify", f"{layers}:silent", *chosen]) == 1
    assert "nothing was shown: every input set says nothing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "a model is needed"),
        (["nowhere.json"], "there is no exported model"),
        (["nothing:here"], "gives no layer (ModuleNotFoundError"),
        (["{layers}:no_layer"], "gave a int, not a paddle.nn.Layer"),
        (["{layers}:without_specs"], "does not say what it takes"),
        (["{export}", "--stages", "oneddn"], "there is no stage 'oneddn'; did you mean onednn?"),
        (["{export}", "--kinds", "odd"], "there is no kind of inputs 'odd'"),
        (["{export}", "--input", "nowhere.npz"], "cannot be read"),
        (["{export}", "--images", "."], "belong together"),
        (["{export}", "--inputs", "nomodule"], "takes module:function"),
        (["{export}", "--budget", "float99=3"], "is no PRECISION=WARN,FAIL"),
        (["{export}", "--time-limit", "0"], "--time-limit is 0"),
        (["{export}", "--rtol", "nan"], "rtol is nan"),
        (["{export}", "--spec", "x"], "is no NAME:DTYPE:SHAPE"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(
    arguments: list[str],
    told: str,
    export: Path,
    layers: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    filled = [item.format(export=export, layers=layers) for item in arguments]
    assert main(["verify", *filled]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"y": np.zeros((1, 8), np.float32)}, "holds no input 'x', but y"),
        ({"x": np.zeros((1, 8))}, "is float64, the model takes float32"),
        ({"x": np.zeros((1, 9), np.float32)}, "has shape [1, 9]"),
    ],
)
def test_inputs_that_do_not_fit(
    arrays: dict[str, Any], told: str, export: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "odd.npz"
    np.savez(path, **arrays)
    assert main(["verify", str(export), "--input", str(path)]) == 2
    assert told in capsys.readouterr().err


def test_explain_prints_stages_and_budgets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--explain"]) == 0
    shown = capsys.readouterr().out
    for part in ("onednn_bf16", "noise budgets", "int8", "--budget replaces a row"):
        assert part in shown


def test_a_file_that_is_no_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a.json", "{}"), ("b.json", "no"), ("c.pdmodel", "rubbish"), ("d.txt", "")):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        path.with_suffix(".pdiparams").touch()
        assert main(["verify", str(path)]) == 2
    assert "is no program that paddle.jit.save wrote" in capsys.readouterr().err


def test_parameters_that_are_missing(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(export, tmp_path / "inference.json")
    assert main(["verify", str(tmp_path)]) == 2
    assert "its parameters inference.pdiparams are missing" in capsys.readouterr().err


def test_the_json_names_its_schema(export: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    main(["verify", str(export), *FEW, "--no-state", "--no-referee", "--json", str(path)])
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert raw["schema"] == "tipcheck.ladder/1"
    assert raw["referee"] == "none: it was switched off"
    assert not any(rung["state"] for rung in raw["rungs"])
