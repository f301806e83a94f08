"""What the CONFIG arguments of ``tipcheck run`` stand for, and what can be set from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tipcheck.cli.config_files import config_files, repo_of
from tipcheck.cli.main import main
from tipcheck.errors import UsageError

CONFIG = """\
===========================train_params===========================
model_name:toy
python:python3
gpu_list:0
use-gpu:True
--epochs:lite_train_lite_infer=5|whole_train_whole_infer=90
--output-dir:./output/
--batch-size:lite_train_lite_infer=4
--pretrained:null
train_model_name:latest.pdparams
--data-path:./lite_data
##
trainer:norm_train
norm_train:train.py
##
===========================eval_params===========================
eval:null
##
===========================export_params===========================
--save-inference-dir:./out/
--pretrained:
norm_export:null
##
train_model:null
infer_export:null
===========================infer_params===========================
inference:deploy/infer.py
--use-gpu:False
--batch-size:1
--model-dir:./out/
--img-path:./images/demo.jpg
--benchmark:True
"""
TRAIN = """\
import sys
print(*sys.argv[1:])
"""


def make_repo(root: Path) -> Path:
    """Make a repo whose training prints its arguments; return its config."""
    config = root / "test_tipc" / "configs" / "toy" / "train_infer_python.txt"
    config.parent.mkdir(parents=True)
    config.write_text(CONFIG, "utf-8")
    (config.parent / "notes.txt").write_text("nothing", "utf-8")
    (root / "train.py").write_text(TRAIN, "utf-8")
    return config


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def test_a_file_is_itself_and_named_once(config: Path) -> None:
    assert config_files([config, config]) == [config]
    assert config_files([Path("nowhere.txt")]) == [Path("nowhere.txt")]


def test_a_folder_stands_for_the_chain_configs_in_it(config: Path) -> None:
    other = config.with_name("train_amp_infer_python.txt")
    other.write_text(CONFIG, "utf-8")
    assert config_files([config.parents[2]]) == [other, config]


def test_a_pattern_in_quotes_is_matched(config: Path) -> None:
    assert config_files([config.parents[1] / "*" / "train_*.txt"]) == [config]


@pytest.mark.parametrize(("name", "kind"), [("empty", "folder"), ("empty/*.txt", "pattern")])
def test_nothing_there_is_an_error(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=f"no config in this {kind}"):
        config_files([tmp_path / name])


def test_configs_of_two_repos_are_refused(config: Path, tmp_path: Path) -> None:
    assert repo_of([config]) == config.parents[3]
    with pytest.raises(UsageError, match="2 repos"):
        repo_of([config, make_repo(tmp_path / "other")])


def test_plan_files_start_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert repo_of([Path("plan.json")]) == tmp_path


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ([], "--epochs=5"),
        (["--epochs", "1"], "--epochs=1"),
        (["--set", "epoch=2"], "--epochs=2"),
        (["--set=--batch-size=8"], None),
        (["--set", "batch=8"], "--batch-size=8"),
        (["--set", "8=16"], "--batch-size=16"),
    ],
)
def test_a_repo_runs_from_anywhere_with_lines_set_from_outside(
    options: list[str],
    argument: str | None,
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    mode = ["--mode", "lite_train_lite_infer", "--only", "train", "--json"]
    code = main(["run", str(config), *mode, *options])
    root = config.parents[3]
    if argument is None:
        assert code == 2  # the name stands for several lines, or for none
        return
    assert code == 0
    step = json.loads((root / "test_tipc/output/results.json").read_text("utf-8"))["steps"][0]
    assert argument in (root / step["log"]).read_text("utf-8").split()


def test_a_config_without_a_mode_is_refused(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(config)]) == 2
    assert "--mode lite_train_lite_infer" in capsys.readouterr().err
