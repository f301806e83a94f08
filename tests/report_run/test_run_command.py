"""The command itself, in a small model repo, with real steps."""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.report_run.conftest import AUTOLOG
from tipcheck import wire
from tipcheck.cli import run as command
from tipcheck.cli import run_options
from tipcheck.config_plans import Plan, Step
from tipcheck.errors import TipcheckError, UsageError

TOOL = Path(__file__).parents[1] / "step_runner" / "tool.py"
LOGS = "test_tipc/output/model/lite"


def shell(name: str, code: str, stage: str = "train", needs: Sequence[str] = ()) -> Step:
    return Step(name, stage, ("sh", "-c", code), f"{LOGS}/{name}.log", needs=tuple(needs))


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "autolog.txt").write_text(AUTOLOG)
    write_plan("good", shell("a", "echo $K"), shell("b", "cat autolog.txt", "infer", "a"))
    write_plan("bad", shell("a", "echo ValueError: x; exit 3"), shell("b", "true", "infer", "a"))
    write_plan("hollow", shell("a", "echo 'tipcheck: hollow: why'"))
    write_plan("slow", shell("a", "touch up; sleep 600", "eval"))
    return tmp_path


def write_plan(name: str, *steps: Step) -> None:
    plan = Plan(f"configs/{name}.txt", "lite", "T", "model", steps)
    Path(f"{name}.json").write_text(wire.dumps(plan))


def tool(*arguments: str) -> int:
    """Run the command as the command line does, in this process."""
    parser = argparse.ArgumentParser()
    command.configure(parser)
    return command.run(parser.parse_args(arguments))


def results(repo: Path) -> dict[str, object]:
    text = (repo / "test_tipc/output/results.json").read_text()
    return {step["step"]: step for step in json.loads(text)["steps"]}


def test_a_good_run(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("good.json", "--env", "K=v=w", "--junit", "j.xml") == 0
    out = capsys.readouterr().out
    assert "[2/2] passed     infer  b" in out
    assert out.splitlines()[-1].startswith("GOOD  2 steps: 2 passed")
    assert (repo / LOGS / "a.log").read_text() == "v=w\n"
    infer = results(repo)["b"]
    assert isinstance(infer, dict)
    assert infer["autolog"]["inference_ms"] == 12.0
    assert (
        "Run successfully with command - model - "
        in (repo / LOGS / "results_python.log").read_text()
    )
    assert ET.parse("j.xml").getroot()[0].get("tests") == "2"  # noqa: S314 - our own


def test_a_bad_run(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("bad.json", "--github", "--status-format", "2021", "-j", "2") == 1
    out = capsys.readouterr().out
    assert "::error file=configs/bad.txt,title=model%3A train failed::a: ValueError: x" in out
    lines = (repo / LOGS / "results_python.log").read_text().splitlines()
    assert len(lines) == 2
    assert all(line.startswith("\x1b[33m Run failed with command - sh -c") for line in lines)


def test_json_is_all_that_is_printed(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("good.json", "bad.json", "--json") == 1
    out = capsys.readouterr().out
    assert json.loads(out)["counts"] == {"passed": 2, "failed": 1, "blocked": 1}


def test_hollow_needs_leave(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("hollow.json") == 1
    assert tool("hollow.json", "--allow", "hollow") == 0


def test_time_limits(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("slow.json", "--timeout=50", "--timeout", "eval=0.2", "--grace=0.1") == 1
    assert "ended after its time limit of 0.2 s" in capsys.readouterr().out


def test_stages_and_resume(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("good.json", "--only", "train") == 0
    assert tool("good.json", "--resume") == 0
    out = capsys.readouterr().out
    assert "skipped    train  a  passed on " in out
    assert "start      infer  b" in out
    assert tool("good.json", "--skip", "infer") == 0


def test_another_interpreter_and_legacy_export(repo: Path) -> None:
    code = "import os, sys; print(sys.executable, os.environ['FLAGS_enable_pir_api'])"
    step = Step("p", "train", ("python3.7", "-c", code), f"{LOGS}/p.log")
    write_plan("py", step)
    assert tool("py.json", "--python", sys.executable, "--legacy-ir") == 0
    assert (repo / LOGS / "p.log").read_text() == f"{sys.executable} 0\n"


def test_the_warm_engine(repo: Path) -> None:
    Path("x.py").write_text("print('from a script')")
    write_plan("py", Step("p", "train", (sys.executable, "x.py"), f"{LOGS}/p.log"))
    env = "PYTHONPATH=" + str(repo)
    (repo / "paddle.py").write_text("")  # nothing to import: this is not about paddle
    assert tool("py.json", "--engine", "warm", "--env", env) == 0
    assert (repo / LOGS / "p.log").read_text() == "from a script\n"


@pytest.mark.parametrize(("cores", "jobs"), [(1, 1), (2, 2), (3, 2), (8, 4), (64, 8)])
def test_how_many_steps_run_at_a_time(cores: int, jobs: int) -> None:
    assert run_options.default_jobs(cores) == jobs


def test_fail_fast_and_log_limit(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_plan("two", shell("a", "yes | head -c 300000; exit 1"), shell("b", "true"))
    assert tool("two.json", "-j1", "--fail-fast", "--log-limit", "10kB") == 1
    assert (repo / LOGS / "a.log").stat().st_size < 11_000
    assert "--fail-fast" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["good.json", "--jobs=0"], "--jobs is 0; give a number of 1 or more"),
        (["good.json", "--grace=-1"], "--grace is -1"),
        (["good.json", "--env", "K"], "--env 'K' sets nothing; write --env NAME=VALUE"),
        (["good.json", "--timeout", "trian=5"], "no step has the stage 'trian'; there are:"),
        (["good.json", "--timeout", "x"], "--timeout 'x' is no time limit"),
        (["good.json", "--timeout", "=3"], "--timeout '=3' is no time limit"),
        (["good.json", "--timeout", "eval=-3"], "--timeout 'eval=-3' is no time limit"),
        (["good.json", "--log-limit", "much"], "--log-limit 'much' is no size"),
        (["good.json", "--only", "x"], "no step has the stage 'x'; there are: train, infer"),
        (["good.json", "--mode", "x"], "good.json: --mode is for configs"),
        (["good.json", "--as-bash"], "good.json: --as-bash is for configs"),
        (["none.json"], "none.json: cannot be read: No such file or directory"),
        (["odd.json"], "odd.json: not readable as JSON"),
        (["empty.json"], "no step to run"),
        (["config.txt"], "config.txt: a config needs a mode; add --mode"),
    ],
)
def test_wrong_usage_says_what_to_type(repo: Path, arguments: list[str], words: str) -> None:
    Path("odd.json").write_text("{")
    write_plan("empty")
    with pytest.raises(UsageError) as caught:
        tool(*arguments)
    assert words in str(caught.value)
    assert not (repo / "test_tipc").exists()


def test_a_config_is_given_to_the_chain_room(repo: Path) -> None:
    Path("config.txt").write_text("===\nmodel_name:x\n")
    with pytest.raises(TipcheckError):
        tool("config.txt", "--mode", "lite_train_lite_infer")


def start(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is ignored stays so for a child
    return subprocess.Popen(
        [sys.executable, str(TOOL), "run", *arguments],
        stdout=stdout,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"},
    )


def test_ctrl_c_ends_in_order_and_the_same_command_goes_on(repo: Path) -> None:
    process = start("slow.json")
    while not (repo / "up").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "INTERRUPTED by SIGINT  1 step: 1 not run" in out
    assert "Traceback" not in out
    again = start("slow.json", "--timeout=0.2")
    out, _ = again.communicate(timeout=300)
    assert again.returncode == 1
    assert "run 1 goes on (it began on " in out


def test_a_reader_that_leaves_early_does_not_end_the_run(repo: Path) -> None:
    write_plan("many", *(shell(f"s{n}", "sleep 0.02") for n in range(20)))
    process = start("many.json")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.wait(300)
    assert len(results(repo)) == 20


def test_the_live_view_on_a_terminal(repo: Path) -> None:
    wait = "until [ -e seen ]; do sleep 0.05; done"
    write_plan("view", shell("a", f"echo epoch 1; {wait}"), shell("b", "exit 4"))
    ours, theirs = pty.openpty()
    process = start("view.json", "-j2", "--timeout=300", stdout=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
        if b"epoch 1" in seen and b"1/2" in seen:
            (repo / "seen").touch()
    os.close(ours)
    assert process.wait(300) == 1
    text = seen.decode("utf-8", "replace")
    assert "epoch 1" in text
    assert "1/2" in text
    assert "NOT GOOD  2 steps: 1 failed, 1 passed" in re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l"), "the cursor is shown again"


def test_gold_files(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = repo / "test_tipc/results/python_model_results_fp32.txt"
    gold.parent.mkdir(parents=True)
    gold.write_text("a.jpg\t[0.5, 0.25]\n")
    write_plan("gold", shell("i", "echo '[2026] INFO: a.jpg [0.5001, 0.25]'", "infer"))
    assert tool("gold.json") == 0
    assert "1 result(s) as in python_model_results_fp32.txt" in capsys.readouterr().out
    gold.write_text("a.jpg\t[0.9, 0.25]\n")
    assert tool("gold.json", "--resume") == 1
    out = capsys.readouterr().out
    assert "config changed: test_tipc/results/python_model_results_fp32.txt" in out
    assert "not as python_model_results_fp32.txt says: a.jpg[0] is 0.5001, gold 0.9" in out
    assert tool("gold.json", "--gold", "test_tipc/results/*32.txt", "--gold-atol", "1") == 0
    assert tool("gold.json", "--no-gold") == 0
    assert tool("gold.json", "--gold", str(repo / "autolog.txt")) == 1
    assert "is not NAME<tab>VALUE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("plan", "options", "said"),
    [
        ("good", ["--gold", "nowhere*"], "no such gold file"),
        ("good", ["--gold", "autolog.txt", "--no-gold"], "exclude each other"),
        ("good", ["--gold-rtol", "-1"], "tolerance"),
        ("bad", ["--gold", "autolog.txt", "--skip", "infer"], "no step is an inference"),
    ],
)
def test_gold_that_cannot_be(repo: Path, plan: str, options: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        tool(f"{plan}.json", *options)


@pytest.mark.parametrize(
    ("profile", "name", "line"),
    [
        ("tutorial-log", "results_python.log", "false!  "),
        ("tutorial", "results_python.log", "m - false!  "),
        ("ocr", "results_python.log", "m - false - l/a.log "),
        ("rec", "results.log", "m - false - l/a.log "),
    ],
)  # fmt: skip
def test_status_lines_are_those_of_the_repo(repo: Path, profile: str, name: str, line: str) -> None:
    step = Step("a", "train", ("false",), "l/a.log")
    Path("p.json").write_text(wire.dumps(Plan("configs/p.txt", "lite", profile, "m", (step,))))
    for style in (["--status-format", "2021"], []):
        assert tool("p.json", *style) == 1
    assert (repo / "l" / name).read_text() == (
        f"\x1b[33m Run failed with command - {line}\x1b[0m\n"
    )
