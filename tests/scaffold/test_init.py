"""``tipcheck init``: what it lays down, what it tells, what it refuses."""

from __future__ import annotations

import io
import subprocess
from typing import TYPE_CHECKING

import pytest

from tipcheck.cli import init
from tipcheck.config_plans.lint import lint
from tipcheck.config_plans.planner import make_plan
from tipcheck.config_plans.scaffold import look as look_module
from tipcheck.config_plans.scaffold.look import count_gpus
from tipcheck.errors import ToolError, UsageError

from .repos import TREE, call, make_repo, tree_of, with_tipcheck

if TYPE_CHECKING:
    from pathlib import Path

LITE = "lite_train_lite_infer"


@pytest.fixture(autouse=True)
def _no_gpu_and_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_module, "count_gpus", lambda: 0)
    monkeypatch.setattr("sys.stdin", io.StringIO())


def lines_of(root: Path, name: str = "train_infer_python.txt") -> list[str]:
    return ["", *(root / "test_tipc/configs/tiny" / name).read_text("utf-8").splitlines()]


def test_the_tree_is_the_one_of_the_documents_and_lints_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_repo(tmp_path)
    assert call(init, root) == 0
    assert tree_of(root) == TREE
    for config in sorted((root / "test_tipc/configs/tiny").iterdir()):
        assert lint(config) == []
    told = capsys.readouterr().out
    assert "train: train.py, options --device" in told
    assert "export: tools/export_model.py, options --pretrained --save-inference-dir" in told
    assert "infer: deploy/inference_python/infer.py, options --use-gpu" in told
    assert "no GPU seen" in told
    assert "tipcheck lite-data SOURCE ./lite_data" in told
    assert "!" not in told


def test_the_lines_carry_the_options_of_the_scripts(tmp_path: Path) -> None:
    root = make_repo(tmp_path)
    call(init, root)
    lines = lines_of(root)
    assert lines[2:15] == [
        "model_name:tiny",
        "python:python3",
        "gpu_list:-1",
        "--device:cpu",
        "--epochs:lite_train_lite_infer=5|whole_train_whole_infer=90",
        "--output-dir:./output/",
        "--batch-size:lite_train_lite_infer=4|whole_train_whole_infer=32",
        "--pretrained:null",
        "train_model_name:latest.pdparams",
        "--data-path:./lite_data",
        "##",
        "trainer:norm_train",
        "norm_train:train.py",
    ]
    assert lines[17] == "eval:train.py --test-only --data-path=./lite_data --device=cpu"
    assert lines[22] == "norm_export:tools/export_model.py --device=cpu"
    assert lines[28] == "--use-gpu:False"
    assert lines[31] == "--img-path:./images/demo.jpg"
    amp = lines_of(root, "train_amp_infer_python.txt")
    assert amp[13:15] == ["trainer:amp_train", "amp_train:train.py --amp_level=O2"]
    pact = lines_of(root, "train_pact_infer_python.txt")
    assert pact[13:15] == ["trainer:pact_train", "pact_train:train.py --pact_quant"]


def test_flags_win_over_what_is_found(tmp_path: Path) -> None:
    root = make_repo(tmp_path)
    call(
        init, root, "--model-name", "tiny", "--python", "python3.10", "--gpu-list", "0|0,1",
        "--epochs", "2", "--batch-size", "lite_train_lite_infer=8", "--data-path", "./small",
        "--images", "./a.jpg", "--weight-name", "last.pdparams", "--train", "train.py --lr 0.1",
        "--eval", "null", "--amp-args=--fp16", "--key", "benchmark=--timing",
    )  # fmt: skip
    lines = lines_of(root)
    assert lines[3:7] == [
        "python:python3.10",
        "gpu_list:0|0,1",
        "--device:gpu|gpu",
        "--epochs:lite_train_lite_infer=2|whole_train_whole_infer=90",
    ]
    assert lines[8] == "--batch-size:lite_train_lite_infer=8"
    assert lines[10:12] == ["train_model_name:last.pdparams", "--data-path:./small"]
    assert (lines[14], lines[17]) == ("norm_train:train.py --lr 0.1", "eval:null")
    assert lines[22] == "norm_export:tools/export_model.py"
    assert lines[28:33:3] == ["--use-gpu:True|False", "--img-path:./a.jpg"]
    assert lines[32] == "--timing:True"
    assert lines_of(root, "train_amp_infer_python.txt")[14].endswith("--lr 0.1 --fp16")


@pytest.mark.parametrize(("gpus", "entries"), [(1, "0"), (2, "0|0,1"), (8, "0|0,1")])
def test_gpus_of_the_machine_decide_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: int, entries: str
) -> None:
    monkeypatch.setattr(look_module, "count_gpus", lambda: gpus)
    root = make_repo(tmp_path)
    call(init, root)
    assert lines_of(root)[4] == f"gpu_list:{entries}"
    assert lines_of(root)[17] == "eval:train.py --test-only --data-path=./lite_data"


def test_gpus_are_counted_by_their_device_files(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "null"):
        (tmp_path / name).touch()
    assert count_gpus(tmp_path) == 2
    assert count_gpus(tmp_path / "nowhere") == 0


def test_a_second_init_keeps_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_repo(tmp_path)
    call(init, root, "--configs", "normal")
    assert not (root / "test_tipc/configs/tiny/train_amp_infer_python.txt").exists()
    capsys.readouterr()
    assert call(init, root) == 0
    told = capsys.readouterr().out
    assert "wrote test_tipc/configs/tiny/train_amp_infer_python.txt" in told
    assert "wrote test_tipc/configs/tiny/train_infer_python.txt" not in told
    assert tree_of(root) == TREE


def test_nothing_is_overwritten_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_repo(tmp_path)
    (root / "test_tipc").mkdir()
    script = root / "test_tipc/prepare.sh"
    script.write_text("wget mine")
    with pytest.raises(UsageError, match=r"prepare\.sh exist.*--force"):
        call(init, root)
    assert tree_of(root) == {"test_tipc/prepare.sh"}
    assert call(init, root, "--dry-run") == 0
    told = capsys.readouterr().out
    assert "differs: test_tipc/prepare.sh" in told
    assert "new: test_tipc/common_func.sh" in told
    assert "    gpu_list:-1" in told
    assert tree_of(root) == {"test_tipc/prepare.sh"}
    assert call(init, root, "--force") == 0
    assert "tipcheck" in script.read_text()
    assert call(init, root, "--dry-run") == 0
    assert "same: test_tipc/prepare.sh" in capsys.readouterr().out


def test_a_readme_by_hand_stays(tmp_path: Path) -> None:
    root = make_repo(tmp_path)
    (root / "test_tipc").mkdir()
    (root / "test_tipc/README.md").write_text("# mine")
    with pytest.raises(UsageError, match="written by a person"):
        call(init, root)
    assert tree_of(root) == {"test_tipc/README.md"}


def test_a_file_in_the_way_is_an_error_not_a_crash(tmp_path: Path) -> None:
    root = make_repo(tmp_path)
    (root / "test_tipc").write_text("a file")
    with pytest.raises(ToolError, match="cannot be written"):
        call(init, root)
    (root / "test_tipc").unlink()
    (root / "test_tipc/README.md").mkdir(parents=True)
    with pytest.raises(ToolError, match="cannot be read"):
        call(init, root)
    (root / "test_tipc/README.md").rmdir()
    (root / "test_tipc/prepare.sh").mkdir(parents=True)
    with pytest.raises(UsageError, match="prepare"):
        call(init, root)


def test_configs_that_cannot_be_read_are_left_out_of_the_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_repo(tmp_path)
    other = root / "test_tipc/configs/other/train_infer_python.txt"
    other.parent.mkdir(parents=True)
    other.write_text("nonsense\n")
    assert call(init, root) == 0
    assert "! not in the documents" in capsys.readouterr().out


def test_questions_are_asked_where_somebody_can_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_repo(tmp_path)
    asked: list[str] = []
    answers = {"name of the model": "other", "GPUs": "0"}

    def answer(question: str) -> str:
        asked.append(question)
        if question.startswith("interpreter"):
            raise EOFError
        return next((text for start, text in answers.items() if question.startswith(start)), "")

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", answer)
    assert call(init, root, "--data-path", "./mine") == 0
    text = (root / "test_tipc/configs/other/train_infer_python.txt").read_text()
    assert "model_name:other\npython:python3\ngpu_list:0\n" in text
    assert "eval:train.py --test-only --data-path=./mine\n" in text
    assert [question.split(" [")[0] for question in asked] == [
        "name of the model",
        "training script, with its arguments",
        "export command, null for none",
        "inference command, null for none",
        "interpreter",
        "GPUs, -1 for the CPU",
        "evaluation command, null for none",
    ]
    asked.clear()
    assert call(init, root, "--yes", "--configs", "normal", "--model-name", "x") == 0
    assert asked == []
    flags = ["--model-name", "x", "--eval", "null"]
    assert call(init, root, *flags, "--force") == 0
    assert not any(question.startswith("evaluation") for question in asked)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model-name", "a/b"], "no model name"),
        (["--model-name", ".."], "no model name"),
        (["--configs", "ptq"], "no config 'ptq'"),
        (["--key", "epochs"], "names no option"),
        (["--key", "speed=--fast"], "no such role"),
        (["--key", "epochs=--a:b"], "cannot stand in a config"),
        (["--train", "nowhere.py"], "nowhere.py: no such script"),
        (["--train", "train.py --lr $(rm x)"], "would be expanded"),
        (["--train", "train.py\n--x"], "cannot stand in a config"),
        (["--images", "C:/a.jpg"], "cannot stand in a config"),
        (["--epochs", " "], "cannot stand in a config"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    root = make_repo(tmp_path)
    with pytest.raises(UsageError, match=message.replace("(", r"\(").replace(".", r"\.")):
        call(init, root, *arguments)
    assert tree_of(root) == set()


def test_no_repo_no_training_script(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        call(init, tmp_path / "nowhere")
    with pytest.raises(UsageError, match="no training script found"):
        call(init, tmp_path)


def test_a_repo_that_another_profile_reads_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_repo(tmp_path).rename(tmp_path / "PaddleOCR")
    assert call(init, root, "--model-name", "tiny") == 1
    assert "! train_infer_python.txt" in capsys.readouterr().out


def test_the_documented_commands_run_with_the_documented_messages(tmp_path: Path) -> None:
    root = make_repo(tmp_path)
    call(init, root)
    env = with_tipcheck(tmp_path / "bin")
    config = "test_tipc/configs/tiny/train_pact_infer_python.txt"

    def bash(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", *words], cwd=root, env=env, capture_output=True, text=True, check=False
        )

    missing = bash("test_tipc/prepare.sh", config, LITE)
    assert missing.returncode == 1
    assert "tipcheck lite-data SOURCE ./lite_data" in missing.stderr

    (root / "lite_data").mkdir()
    subprocess.run(["tar", "-cf", "lite_data.tar", "lite_data"], cwd=root, check=True)
    (root / "lite_data").rmdir()
    ready = bash("test_tipc/prepare.sh", config, LITE)
    assert (ready.returncode, (root / "lite_data").is_dir()) == (0, True), ready.stderr

    ran = bash("test_tipc/test_train_inference_python.sh", config, LITE)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    out = "./log/tiny/lite_train_lite_infer/pact_train_gpus_-1"
    assert (
        f" Run successfully with command - python3 train.py --pact_quant --output-dir={out} "
        "--epochs=5 --batch-size=4 --device=cpu --data-path=./lite_data!" in ran.stdout
    )
    assert (
        " Run successfully with command - python3 tools/export_model.py --device=cpu "
        f"--pretrained={out}/latest.pdparams --save-inference-dir={out}!" in ran.stdout
    )
    assert ran.stdout.count(" Run successfully with command - ") == 4

    (root / "tools/export_model.py").write_text("raise SystemExit('broken')")
    broken = bash("test_tipc/test_train_inference_python.sh", config, LITE)
    assert broken.returncode == 1
    assert " Run failed with command - python3 tools/export_model.py" in broken.stdout

    bad = bash("test_tipc/test_train_inference_python.sh", config, "no_mode")
    assert (bad.returncode, "Run " in bad.stdout) == (2, False)
    for words in ([], [config], ["nowhere.txt", LITE]):
        assert bash("test_tipc/prepare.sh", *words).returncode == 2
    (root / "test_tipc/configs/tiny/shifted.txt").write_text("model_name:x\n")
    shifted = bash("test_tipc/prepare.sh", "test_tipc/configs/tiny/shifted.txt", LITE)
    assert shifted.returncode == 1
    whole = bash("test_tipc/prepare.sh", config, "whole_infer")
    assert "pretrain_models/tiny_pretrained.pdparams does not exist" in whole.stderr


def test_scripts_say_when_tipcheck_is_missing(tmp_path: Path) -> None:
    root = make_repo(tmp_path)
    call(init, root)
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    config = "test_tipc/configs/tiny/train_infer_python.txt"
    for script in ("prepare.sh", "test_train_inference_python.sh"):
        ran = subprocess.run(
            ["/bin/bash", f"test_tipc/{script}", config, LITE],
            cwd=root,
            env={"PATH": f"{python.parent}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 3
        assert "tipcheck is not installed" in ran.stderr


def test_the_chain_of_the_laid_down_configs_has_no_corrections(tmp_path: Path) -> None:
    root = make_repo(tmp_path)
    call(init, root, "--gpu-list", "0|0,1")
    config = root / "test_tipc/configs/tiny/train_infer_python.txt"
    plan = make_plan(config, LITE)
    assert plan.profile == "tipcheck"
    assert [step.stage for step in plan.steps].count("train") == 2
    assert all("--device=gpu" in step.argv for step in plan.steps if step.stage == "train")
    rules = {note.rule for step in plan.steps for note in step.corrections}
    assert rules <= {"gpu-not-pinned", "log-overwritten"}
