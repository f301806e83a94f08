"""``tipcheck prepare``: a prepare.sh that fails is believed, one that works is not disturbed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tipcheck
from tipcheck.cli import prepare
from tipcheck.errors import ToolError, UsageError
from tipcheck.step_runner import prepare as runner

from .repos import call

MODE = "lite_train_lite_infer"
WRITE_CHILD = "echo $! > child.part\nmv child.part child"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "repo/test_tipc/configs/tiny/a.txt"
    path.parent.mkdir(parents=True)
    path.write_text("===x===\nmodel_name:tiny\n")
    monkeypatch.chdir(tmp_path)
    return path


def script(config: Path, text: str) -> Path:
    path = config.parents[2] / "prepare.sh"
    path.write_text(text)
    return path


def test_it_runs_as_it_is_meant_to(config: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script(
        config, 'echo "$0 $1 $2 $3"; pwd; echo to-stderr >&2; [ -t 0 ] || cat; bash -c "false; :"'
    )
    assert call(prepare, config, MODE, "0,1") == 0
    told = capfd.readouterr().out
    assert told.startswith(f"test_tipc/prepare.sh test_tipc/configs/tiny/a.txt {MODE} 0,1\n")
    assert f"{config.parents[3]}\nto-stderr\nprepared; log: " in told
    log = config.parents[2] / f"output/prepare/tiny-a-{MODE}.log"
    assert log.read_text().endswith("to-stderr\n")


@pytest.mark.parametrize(
    "first",
    [
        "false",
        "tar -xf nothing.tar",
        "no-such-command",
        "source nothing.sh",
        "cd nowhere",
        "mkdir no/such/folder",
        "ln -s a no/such/folder/b",
        "mkdir $(echo /proc/x)",
        "(cd nowhere; ls)",
        "f() { false; }; f",
        "x=$(false)",
        "cat nothing | grep x",
        "cd nowhere && ls",
        "mkdir -p d && tar -xf nothing.tar && cd ..",
        "f() { cd nowhere && ls; echo x; }; f",
    ],
)
def test_one_that_fails_in_its_first_line_stops(
    config: Path, capfd: pytest.CaptureFixture[str], first: str
) -> None:
    script(config, f"{first}\necho went on\n")
    assert call(prepare, config, MODE) == 1
    told = capfd.readouterr().out
    assert "went on\n" not in told
    assert "not prepared: test_tipc/prepare.sh:1: " in told
    assert "failed; --lenient goes on after failures" in told


def test_lenient_is_what_bash_does(config: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script(config, "false\necho went on\n")
    assert call(prepare, config, MODE, "--lenient") == 0
    assert "went on\n" in capfd.readouterr().out
    script(config, "echo on\nfalse\n")
    assert call(prepare, config, MODE, "--lenient") == 1
    assert "ended with exit code 1" in capfd.readouterr().out


def test_the_innermost_failure_is_named(config: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script(config, "load() {\n  local a\n  a=$(cat nothing)\n}\n\nload\n")
    assert call(prepare, config, MODE) == 1
    assert "prepare.sh:3: cat nothing (exit code 1)" in capfd.readouterr().out


def test_a_failure_that_the_script_looks_at_is_none(config: Path) -> None:
    script(
        config,
        "if grep -q x nothing; then :; fi\nfalse || true\n! true\nwhile false; do :; done\n"
        '[ a = b ] && echo x\n[ "$1" ] || exit 3\n[[ a == b ]] && echo x\n'
        "test -f nothing && cat nothing\ngrep -q x nothing && echo x\n"
        "cd nowhere && ls || true\nif cd nowhere && ls; then :; fi\n"
        "which no-such-command && echo x\nx=$(false) && echo x\n"
        "mkdir -p d && cd d && cd ..\n"
        "if false | grep x; then :; else echo in else; fi\n"
        "mkdir -p d && cd d && cd ..\n"
        "if (cd nowhere 2>&1); then :; else echo in else; fi\n"
        "mkdir -p d && cd d && cd ..\n"
        "for a in 1 2; do cd d && cd ..; false || true; done\n"
        "ask() { [ a = b ]; }\nask && echo x\nfalse & wait $! || true\nexit 0\n",
    )
    assert call(prepare, config, MODE) == 0


def test_work_that_was_done_before_does_not_stop_a_second_time(
    config: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wget = config.parents[3] / "wget"
    wget.write_text("#!/bin/sh\nexit ${CODE:-1}\n")
    wget.chmod(0o755)
    script(
        config,
        "name=data\nmkdir ${name}\nln -s ${name} here\nln -s nowhere dangling\n"
        'PATH="$PWD:$PATH" wget -nc -P ./x https://a\necho end\n',
    )
    wget_line = 'PATH="$PWD:$PATH" wget -nc'
    for number in range(2):
        assert call(prepare, config, MODE) == 1  # the wget has a word before it
        assert wget_line in capfd.readouterr().out, number
    script(config, "export PATH=.:$PATH\nmkdir data\nln -s x dangling\nwget -nc -P x y\necho end\n")
    assert call(prepare, config, MODE) == 0
    told = capfd.readouterr().out
    assert "\nend\n" in told
    assert "went on after test_tipc/prepare.sh:2: mkdir data (exit code 1): done before\n" in told
    assert "prepare.sh:3: ln -s x dangling" in told
    assert "prepare.sh:4: wget -nc -P x y" in told
    script(config, "export PATH=.:$PATH CODE=4\nwget -nc -P x y\n")
    assert call(prepare, config, MODE) == 1
    assert "prepare.sh:2: wget -nc -P x y (exit code 4) failed" in capfd.readouterr().out


def test_nothing_of_a_failed_command_is_run_again(config: Path) -> None:
    script(config, "mkdir no/a/$(echo x >> ran)\n")
    assert call(prepare, config, MODE) == 1
    assert (config.parents[3] / "ran").read_text() == "x\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exit 7", "ended with exit code 7"),
        ("if [ x = ; then", "ended with exit code 2"),
        ("kill -9 $$", "died on SIGKILL"),
    ],
)
def test_other_ends_are_named(
    config: Path, capfd: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    script(config, text)
    assert call(prepare, config, MODE) == 1
    assert f"not prepared: test_tipc/prepare.sh {reason}" in capfd.readouterr().out


def test_a_time_limit_ends_all_of_it(
    config: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    child = config.parents[3] / "child"
    script(config, f"trap '' TERM\nsleep 600 &\n{WRITE_CHILD}\nsleep 600\nsleep 600")
    wait: Any = runner._wait

    def wait_for_the_child_first(*arguments: object) -> bool:
        until(child.exists)
        return bool(wait(*arguments))

    monkeypatch.setattr(runner, "_wait", wait_for_the_child_first)
    assert call(prepare, config, MODE, "--timeout", "0.3", "--grace", "0.3") == 1
    assert "ended after its time limit of 0.3 s" in capfd.readouterr().out
    assert_gone(int(child.read_text()))


def test_what_it_leaves_running_is_ended(config: Path) -> None:
    script(config, "sleep 600 &\necho $! > child\n")
    assert call(prepare, config, MODE) == 0
    assert_gone(int((config.parents[3] / "child").read_text()))


def test_a_daemon_that_keeps_the_output_open_holds_nothing_up(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_LEFT_OPEN", 0.2)
    daemon_code = f"{WRITE_CHILD.replace('$!', '$$')}\nsleep 600\necho late"
    script(config, f"setsid bash -c '{daemon_code}' &\nuntil test -e child; do sleep 0.01; done\n")
    assert call(prepare, config, MODE) == 0
    daemon = int((config.parents[3] / "child").read_text())
    try:
        assert not is_gone(daemon), "it left the script's process group, and is not waited for"
    finally:
        os.killpg(daemon, signal.SIGKILL)


def test_a_signal_while_bash_is_being_started_ends_it(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(config, f"sleep 600 &\n{WRITE_CHILD}\nsleep 600")
    child = config.parents[3] / "child"

    class Slow(subprocess.Popen[bytes]):
        """Bash runs before its starter knows that it does."""

        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            until(child.exists)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Slow)
    with pytest.raises(KeyboardInterrupt):
        call(prepare, config, MODE)
    assert_gone(int(child.read_text()))


def test_a_second_signal_does_not_wait_for_the_grace(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(config, f"trap '' TERM\n{WRITE_CHILD.replace('$!', '$$')}\nwhile :; do sleep 0.05; done")
    child = config.parents[3] / "child"
    wait: Any = runner._wait

    def interrupted(*arguments: object) -> bool:
        until(child.exists)
        os.kill(os.getpid(), signal.SIGINT)
        return bool(wait(*arguments))

    monkeypatch.setattr(runner, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call(prepare, config, MODE, "--grace", "100000")
    assert_gone(int(child.read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_of_it(config: Path, number: signal.Signals) -> None:
    script(config, f"sleep 600 &\n{WRITE_CHILD}\nsleep 600")
    code = (
        "import signal\nfor number in (1, 2, 15):\n"
        "    signal.signal(number, signal.SIG_DFL)  # whoever starts the tests may ignore some\n"
        "signal.signal(2, signal.default_int_handler)\n"
        "import argparse, sys\nfrom tipcheck.cli import prepare\n"
        "parser = argparse.ArgumentParser()\nprepare.configure(parser)\n"
        "try:\n    prepare.run(parser.parse_args(sys.argv[1:]))\n"
        "except KeyboardInterrupt:\n    sys.exit(130)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(tipcheck.__file__).parents[1])}
    process = subprocess.Popen([sys.executable, "-c", code, str(config), MODE], env=env)
    child = config.parents[3] / "child"
    until(child.exists)
    process.send_signal(number)
    assert process.wait(timeout=300) == 130
    assert_gone(int(child.read_text()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.txt", MODE], "nowhere.txt: no such config"),
        (["CONFIG", "lite_train_infer"], "no mode 'lite_train_infer'"),
        (["CONFIG", MODE, "--timeout", "nan"], "--timeout is nan"),
        (["CONFIG", MODE, "--grace", "-1"], "--grace is -1"),
        (["CONFIG", MODE], "prepare.sh: no such script; name it with --script"),
        (["CONFIG", MODE, "--script", "other.sh"], "other.sh: no such script"),
    ],
)
def test_what_cannot_be_is_refused(config: Path, arguments: list[str], message: str) -> None:
    words = [str(config) if word == "CONFIG" else word for word in arguments]
    with pytest.raises(UsageError, match=message):
        call(prepare, *words)


def test_a_script_and_a_log_elsewhere(config: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sh"
    other.write_text("echo $0")
    assert call(prepare, config, MODE, "--script", "other.sh", "--log", "a/b.log") == 0
    assert (tmp_path / "a/b.log").read_text() == f"{other}\n"


def test_a_log_that_cannot_be_written(config: Path) -> None:
    script(config, "echo x")
    with pytest.raises(ToolError, match="cannot be written"):
        call(prepare, config, MODE, "--log", str(config / "below/a.log"))
    if Path("/dev/full").exists():
        script(config, "echo x; sleep 60")
        with pytest.raises(ToolError, match="output is lost"):
            call(prepare, config, MODE, "--log", "/dev/full")


def test_a_reader_that_went_away_does_not_end_it(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(piece: bytes) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(prepare, "_show", broken)
    script(config, "echo a\necho b > done\n")
    assert call(prepare, config, MODE) == 0
    assert (config.parents[3] / "done").exists()


def test_without_bash(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(config, "echo x")
    monkeypatch.setenv("PATH", str(config.parent))
    with pytest.raises(ToolError, match="bash cannot be started"):
        call(prepare, config, MODE)


def until(check: Any) -> None:
    end = time.monotonic() + 300
    while not check():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def assert_gone(pid: int) -> None:
    until(lambda: is_gone(pid))
