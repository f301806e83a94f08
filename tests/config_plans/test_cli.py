"""The commands plan, lint and record: what they print and how they end."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tipcheck import wire
from tipcheck.cli import lint, plan, record, run
from tipcheck.config_plans import Plan
from tipcheck.errors import ToolError, UsageError

from .configs import PTQ, SUITE, TUTORIAL, change, put

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

LITE = "lite_train_lite_infer"


def call(module: ModuleType, *arguments: object) -> int:
    parser = argparse.ArgumentParser()
    module.configure(parser)
    code: int = module.run(parser.parse_args([str(argument) for argument in arguments]))
    return code


def test_a_plan_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path, "PaddleClas", change(SUITE, {2: "model_name:[red]x", 9: "b:8"}))
    assert call(plan, path, "--mode", LITE) == 0
    shown = capsys.readouterr().out
    assert "[red]x · lite_train_lite_infer · profile clas" in shown
    assert "put right: " in shown
    assert "epochs-lost" in shown
    assert "(in" in shown
    assert call(plan, path, "--mode", "whole_infer") == 0
    assert "starts nothing" in capsys.readouterr().out


def test_a_plan_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path, "mine", TUTORIAL)
    assert call(plan, path, "--mode", LITE, "--json", "--as-bash", "--profile", "tutorial") == 0
    text = capsys.readouterr().out
    assert {"id", "stage", "argv", "env", "cwd", "log", "needs", "corrections"} <= set(
        json.loads(text)["steps"][0]
    )
    assert wire.loads(text, Plan).steps[0].argv[:2] == ("python3", "fit.py")


def test_a_plan_file_is_shown_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = put(tmp_path, "mine", TUTORIAL)
    assert call(plan, path, "--mode", LITE, "--json") == 0
    text = capsys.readouterr().out
    (tmp_path / "plan.json").write_text(text)
    assert call(plan, "plan.json", "--json") == 0
    assert capsys.readouterr().out == text
    assert call(plan, "plan.json", "--shell") == 0
    assert f"cd {tmp_path}\n" in capsys.readouterr().out
    with pytest.raises(UsageError, match="--mode is for configs, this is a plan"):
        call(plan, "plan.json", "--mode", LITE)


def test_a_plan_as_a_script_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show = 'import os,sys\nprint(sys.argv[1:], os.environ.get("CUDA_VISIBLE_DEVICES"))\n'
    text = change(TUTORIAL, {4: "gpu_list:0|0,1", 14: "norm_train:fit.py --say 'it is; $(x)'"})
    path = put(tmp_path, "a repo", text.replace("fit.py --only-eval", "fit.py"))
    for script in ("fit.py", "export.py", "deploy/run.py"):
        (tmp_path / "a repo" / script).parent.mkdir(exist_ok=True)
        (tmp_path / "a repo" / script).write_text(show)
    (tmp_path / "a repo" / "paddle" / "distributed").mkdir(parents=True)
    (tmp_path / "a repo" / "paddle" / "__init__.py").touch()
    (tmp_path / "a repo" / "paddle" / "distributed" / "__init__.py").touch()
    (tmp_path / "a repo" / "paddle" / "distributed" / "launch.py").write_text(show)
    for package in ("paddle", "paddle/distributed"):  # before the one that may be installed
        (tmp_path / "a repo" / package / "__init__.py").touch()
    assert call(plan, path, "--mode", LITE, "--shell") == 0
    script_text = capsys.readouterr().out
    subprocess.run(["sh", "-c", script_text], check=True)
    logs = tmp_path / "a repo" / "test_tipc" / "output" / "tiny" / LITE
    train = (logs / "norm_train_gpus_0_autocast_False_nodes_1_train.log").read_text()
    assert "'it is; $(x)'" in train
    assert train.endswith("0\n")
    many = (logs / "norm_train_gpus_0,1_autocast_False_nodes_1_train.log").read_text()
    assert many.endswith("None\n")
    assert "gpu-not-pinned" in script_text


def test_a_script_changes_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path, "PaddleClas", change(SUITE, {9: "b:8"}))
    assert call(plan, path, "--mode", LITE, "--shell", "--as-bash") == 0
    assert "(cd deploy && env CUDA_VISIBLE_DEVICES=0 python3" in capsys.readouterr().out


def test_a_script_leaves_patterns_to_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = change(SUITE, {11: "train_model_name:run-*/last*", 25: "k:'a*b'"})
    path = put(tmp_path, "PaddleGAN", text)
    assert call(plan, path, "--mode", LITE, "--shell") == 0
    script = capsys.readouterr().out
    assert "norm_train_gpus_0_autocast_null/run-*/last* " in script
    assert "'k=a*b'" in script


def test_the_bash_reading_of_a_shifted_config_warns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path, "PaddleOCR", change(SUITE, {17: None}))
    assert call(plan, path, "--mode", LITE, "--as-bash", "--json") == 0
    shown = capsys.readouterr()
    assert {step.stage for step in wire.loads(shown.out, Plan).steps} == {"train"}
    assert shown.err.startswith(f"{path}:17: warning: a line like 'pact_train:null'")
    with pytest.raises(UsageError, match="missing here"):
        call(plan, path, "--mode", LITE)


def test_a_plan_with_other_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path, "mine", TUTORIAL)
    assert call(plan, path, "--mode", LITE, "--json", "--set=--epochs=9", "--set", "3=py") == 0
    step = wire.loads(capsys.readouterr().out, Plan).steps[0]
    assert (step.argv[0], "--epochs=9" in step.argv) == ("py", True)
    with pytest.raises(UsageError, match="sets nothing"):
        call(plan, path, "--mode", LITE, "--set", "python")


def test_a_plan_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        call(plan, tmp_path / "missing", "--mode", LITE)
    with pytest.raises(UsageError, match="no mode 'x'"):
        call(plan, put(tmp_path, "mine", TUTORIAL), "--mode", "x")
    with pytest.raises(UsageError, match="a config needs a mode"):
        call(plan, "a")


def test_lint_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = put(tmp_path, "PaddleOCR", SUITE, "good.txt")
    bad = put(tmp_path, "PaddleOCR", change(SUITE, {17: None}), "bad.txt")
    assert call(lint, good) == 0
    assert capsys.readouterr().out == "0 error(s), 0 other finding(s) in 1 config(s)\n"
    assert call(lint, good, bad, tmp_path / "missing") == 1
    shown = capsys.readouterr().out
    assert f"{bad}:17: error: a line like 'pact_train:null'" in shown
    assert "missing: error: no such file [unreadable]" in shown
    assert "2 error(s), 0 other finding(s) in 3 config(s)" in shown


def test_lint_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path, "PaddleOCR", change(SUITE, {41: "--use_gpu:Ture"}))
    assert call(lint, path, "--json", "--profile", "ocr") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "tipcheck.lint/1"
    assert {item["rule"] for item in found["findings"]} == {"misspelt-flag"}
    assert {item["line"] for item in found["findings"]} == {41}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = put(tmp_path, "mine", TUTORIAL)
    script = tmp_path / "chain.sh"
    script.write_text("python fit.py $2\n")
    assert call(record, script, config, "m") == 0
    assert wire.loads(capsys.readouterr().out, Plan).steps[0].argv == ("python", "fit.py", "m")
    out = tmp_path / "plan.json"
    assert call(record, script, config, "m", "--out", out, "--timeout", 20) == 0
    assert capsys.readouterr().out == f"{out}: 1 step(s)\n"
    assert wire.loads(out.read_text(), Plan).profile == "recorded"
    with pytest.raises(ToolError, match="cannot be written"):
        call(record, script, config, "m", "--out", tmp_path)


def test_nothing_of_a_config_steers_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path, "repo", change(TUTORIAL, {14: "norm_train:fit.py --x=\x1b[31mred"}))
    assert call(plan, path, "--mode", LITE) == 0
    call(lint, path)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\\x1b[31mred" in printed


def test_lint_takes_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, "PaddleOCR", SUITE)
    put(tmp_path, "PaddleOCR", SUITE, "other_train_infer_python.txt")
    assert call(lint, tmp_path) == 0
    assert capsys.readouterr().out == "0 error(s), 0 other finding(s) in 2 config(s)\n"


def test_epochs_are_for_what_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = put(tmp_path, "mine", TUTORIAL)
    put(tmp_path, "mine", PTQ, "train_ptq_infer_python.txt")
    assert call(plan, first.parent, "--mode", LITE, "--epochs", "7", "--json") == 0
    trained, quantised = json.loads(capsys.readouterr().out)
    assert "--epochs=7" in trained["steps"][0]["argv"]
    assert [step["stage"] for step in quantised["steps"]] == ["export", "infer", "infer"]
    assert "--epochs" not in str(quantised)


def test_plans_of_several_configs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = put(tmp_path, "mine", TUTORIAL)
    put(tmp_path, "mine", change(TUTORIAL, {2: "model_name:other"}), "train_amp_infer_python.txt")
    options = [
        "--mode",
        LITE,
        "--device",
        "cpu",
        "--epochs",
        "7",
        "--python",
        "py",
        "--only",
        "train",
    ]
    assert call(plan, first.parent, *options, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["model_name"] for one in listed] == ["other", "tiny"]
    assert [[step["stage"] for step in one["steps"]] for one in listed] == [["train"], ["train"]]
    assert all(one["steps"][0]["argv"][0] == "py" for one in listed)
    assert all("--epochs=7" in one["steps"][0]["argv"] for one in listed)

    pattern = f"{first.parent}/train_*.txt"
    assert call(plan, pattern, *options) == 0
    shown = capsys.readouterr().out
    assert [f"{name} · {LITE}" in shown for name in ("tiny", "other")] == [True, True]
    assert call(plan, pattern, *options, "--shell") == 0
    assert capsys.readouterr().out.count(f"cd {tmp_path / 'mine'}") == 2


def test_plans_of_several_configs_can_be_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(tmp_path, "mine", TUTORIAL)
    put(tmp_path, "mine", change(TUTORIAL, {2: "model_name:other"}), "train_amp_infer_python.txt")
    monkeypatch.chdir(tmp_path / "mine")
    options = ["--mode", LITE, "--device", "cpu", "--python", "true", "--only", "train"]
    call(plan, first.parent, *options, "--json")
    file = tmp_path / "plans.json"
    file.write_text(capsys.readouterr().out)
    assert call(run, file) == 0
    assert "2 passed" in capsys.readouterr().out
    file.write_text("[3]")
    with pytest.raises(UsageError, match=r"plans.json, plan 1: expected schema"):
        call(run, file)
    file.write_text("[3")
    with pytest.raises(UsageError, match="not readable as JSON"):
        call(run, file)


def test_choices_of_plan_that_cannot_be(tmp_path: Path) -> None:
    path = put(tmp_path, "mine", TUTORIAL)
    for options, message in (
        (["--only", "nothing"], "no step has the stage"),
        (["--epochs", "0"], "--epochs is 0"),
        (["--set", "x"], "sets nothing"),
    ):
        with pytest.raises(UsageError, match=message):
            call(plan, path, "--mode", LITE, *options)
    path.unlink()
    with pytest.raises(UsageError, match="no config in this folder"):
        call(plan, path.parent, "--mode", LITE)
