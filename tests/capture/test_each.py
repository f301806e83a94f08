"""Every config of a repo: exported side by side to one path, verified, written down, resumed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tipcheck.cli.main import main
from tipcheck.cli.verify_each import find_configs

SCRIPT = """
import argparse

import paddle


class Net(paddle.nn.Layer):
    def __init__(self, width, wrong):
        super().__init__()
        self.f = paddle.nn.Linear(width, 3)
        self.wrong = wrong

    def forward(self, x):
        y = self.f(x)
        return y + 1 if self.wrong and not paddle.in_dynamic_mode() else y


parser = argparse.ArgumentParser()
parser.add_argument("-c")
with open(parser.parse_args().c) as file:
    kind, width = file.read().split()
if kind == "none":
    print("nothing is saved")
elif kind == "fail":
    raise RuntimeError("no weights for this one")
else:
    net = Net(int(width), kind == "wrong")
    net.eval()
    spec = paddle.static.InputSpec([None, int(width)], "float32", "x")
    net = paddle.jit.to_static(net, input_spec=[spec], full_graph=True)
    paddle.jit.save(net, "inference/model")
"""
CONFIGS = {
    "a/good4.yaml": "good 4",
    "a/b/good8.yaml": "good 8",
    "wrong.yaml": "wrong 4",
    "fail.yaml": "fail 1",
    "none.yaml": "none 1",
}


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repo")
    for name, text in CONFIGS.items():
        path = root / "configs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / "configs" / "README.md").write_text("not a config", encoding="utf-8")
    (root / "export.py").write_text(SCRIPT, encoding="utf-8")
    return root


def run_each(repo: Path, *more: str) -> tuple[int, dict[str, Any], str]:
    report = repo.parent / "each.json"
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "tipcheck", "verify", "--each", "configs", "--json"),
            *(str(report), "--log", "check_repo.log", "--output", "../kept"),
            *("--junit", str(repo.parent / "each.xml"), "-j", "2", *more),
            *("--", sys.executable, "export.py", "-c", "{}"),
        ],
        cwd=repo,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, json.loads(report.read_text("utf-8")), ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def first(repo: Path) -> tuple[int, dict[str, Any], str]:
    return run_each(repo)


@pytest.mark.paddle
def test_each_config_has_its_verdict(first: tuple[int, dict[str, Any], str]) -> None:
    code, report, printed = first
    found = {one["config"]: (one["outcome"], one["verdict"]) for one in report["configs"]}
    assert found == {
        "configs/a/b/good8.yaml": ("passed", "PASS"),
        "configs/a/good4.yaml": ("passed", "PASS"),
        "configs/fail.yaml": ("failed", ""),
        "configs/none.yaml": ("failed", ""),
        "configs/wrong.yaml": ("failed", "FAIL"),
    }, printed
    assert code == 1
    reasons = {one["config"]: one["reason"] for one in report["configs"]}
    assert "no weights for this one" in reasons["configs/fail.yaml"]
    assert "exported nothing" in reasons["configs/none.yaml"]
    assert "did not verify" in reasons["configs/wrong.yaml"]
    assert report["counts"] == {"PASS": 2, "FAIL": 1, "no export": 2}
    assert "5 configs in" in printed


@pytest.mark.paddle
def test_the_status_lines_are_those_of_the_seed(
    first: tuple[int, dict[str, Any], str], repo: Path
) -> None:
    assert first[0] == 1
    lines = (repo / "check_repo.log").read_text("utf-8").splitlines()
    words = [line.removeprefix("\033[33m").removesuffix("\033[0m").strip() for line in lines]
    assert words == [
        "Run successfully with command - configs/a/b/good8.yaml!",
        "Run successfully with command - configs/a/good4.yaml!",
        "Run failed with command - configs/fail.yaml!",
        "Run failed with command - configs/none.yaml!",
        "Run failed with command - configs/wrong.yaml!",
    ]


@pytest.mark.paddle
def test_junit_has_a_suite_for_each(first: tuple[int, dict[str, Any], str], repo: Path) -> None:
    assert first[0] == 1
    suites = ET.parse(repo.parent / "each.xml").getroot()  # noqa: S314 - our own file
    bad = {suite.get("name"): len(suite.findall("testcase/*")) for suite in suites}
    assert bad == {
        name: int("good" not in name) for name in sorted(f"configs/{n}" for n in CONFIGS)
    }
    assert all(len(suite.findall("testcase")) == 1 for suite in suites)


@pytest.mark.paddle
def test_resumed_it_runs_only_what_is_not_good(
    first: tuple[int, dict[str, Any], str], repo: Path
) -> None:
    assert first[0] == 1
    (repo / "configs" / "fail.yaml").write_text("good 2", encoding="utf-8")
    (repo / "configs" / "a" / "good4.yaml").write_text("good 5", encoding="utf-8")
    for name in ("wrong.yaml", "none.yaml"):
        (repo / "configs" / name).unlink()
    code, report, printed = run_each(repo, "--resume")
    assert code == 0, printed
    found = {one["config"]: (one["outcome"], one["verdict"]) for one in report["configs"]}
    assert found == {
        "configs/a/b/good8.yaml": ("skipped", "PASS"),
        "configs/a/good4.yaml": ("passed", "PASS"),
        "configs/fail.yaml": ("passed", "PASS"),
    }
    lines = (repo / "check_repo.log").read_text("utf-8")
    assert lines.count("configs/fail.yaml") == 1
    assert "Run failed with command - configs/wrong.yaml!" in lines  # what is not there stays


def test_what_was_verified_another_way_is_not_resumed(
    first: tuple[int, dict[str, Any], str], repo: Path
) -> None:
    """Other inputs and other leniency are other questions."""
    for more in (["--seed", "5"], ["--allow", "suspect"], ["--kinds", "large"]):
        _, report, _ = run_each(repo, "--resume", *more)
        assert "skipped" not in {one["outcome"] for one in report["configs"]}


def test_what_a_pattern_or_folder_means(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo)
    (repo / "plain" / "deep").mkdir(parents=True)
    for name in ("one.cfg", "deep/two.cfg", ".hidden"):
        (repo / "plain" / name).touch()
    assert find_configs("plain") == ["plain/deep/two.cfg", "plain/one.cfg"]
    assert find_configs("configs/**/good8.yaml") == ["configs/a/b/good8.yaml"]
    assert "configs/README.md" not in find_configs("configs")
    assert find_configs("./configs/a/*.yaml") == ["configs/a/good4.yaml"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--each", "no/*.yaml", "--", "python", "x.py", "{}"], "no config matches"),
        (["--each", ".", "--", "python", "x.py"], "has no {}"),
        (["--each", ".", "-j", "0", "--", "python", "{}"], "--jobs is 0"),
        (["--"], "no command behind"),
        (["--", "no-such-program-anywhere"], "command not found"),
        (["model.json", "--", "true"], "cannot go together"),
        (["--train", "a:b", "--", "true"], "cannot go together"),
        (["--each", "."], "no command behind"),
        (["--layer-limit", "0", "--", "true"], "--layer-limit"),
        (["--layer-limit", "nan", "--", "true"], "--layer-limit is nan"),
        (["--stages", "infrence", "--", "true"], "did you mean inference?"),
        (["--kinds", "nrmal", "--", "true"], "no kind of inputs 'nrmal'"),
        (["--calibration", "gone.npz", "--", "true"], "no calibration data"),
        (["--seed", "-1", "--", "true"], "--seed is -1"),
        (["--train", "a:b", "--seed", "4294967296"], "--seed is 4294967296"),
        (["--time-limit", "nan", "--", "true"], "--time-limit is nan"),
        (["--timeout", "nan", "--each", ".", "--", "true", "{}"], "--timeout is nan"),
        (["--timeout", "9", "--", "true"], "--timeout belongs to --each"),
        (["--jobs", "2", "--", "true"], "--jobs belongs to --each"),
        (["model.json", "--resume"], "--resume belongs to --each"),
        (["model.json", "--log", "check.log"], "--log belongs to --each"),
        (["model.json", "--output", "kept"], "--output belongs to a command"),
    ],
)
def test_wrong_usage_is_told_on_one_line(
    argv: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "x.yaml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert main(["verify", *argv]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


def test_a_command_that_exports_nothing_is_no_pass(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["verify", "--", "true"]) == 1
    assert "exported nothing" in capfd.readouterr().err
    assert main(["verify", "--", "sh", "-c", "echo mine; exit 7"]) == 7
    told = capfd.readouterr()
    assert told.out == "mine\n"
    assert "ended with code 7" in told.err
    assert main(["verify", "--", "sh", "-c", "kill -TERM $$"]) == 128 + 15


def test_files_that_cannot_be_written_are_told_after_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was found out is shown first; a file that cannot be written is the tool's failure."""
    (tmp_path / "x.yaml").touch()
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    each = ["verify", "--each", "*.yaml", "--output", "kept", "--engine", "local"]
    for option in ("--log", "--junit", "--json"):
        assert main([*each, option, "file/below", "--", "true", "{}"]) == 3
        told = capsys.readouterr()
        assert "exported nothing" in told.out
        assert told.err.splitlines()[-1].startswith("tipcheck: error: file/below: cannot be")
