from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.step_runner.conftest import wait_until
from tipcheck.errors import ToolError
from tipcheck.step_runner import hold as hold_module
from tipcheck.step_runner.hold import hold

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import subprocess, sys, time
from pathlib import Path
from tipcheck.step_runner.hold import hold
with hold(Path(sys.argv[1])) as descriptor:
    if len(sys.argv) > 2:
        child = subprocess.Popen(["sleep", sys.argv[2]], pass_fds=[descriptor])
        Path(sys.argv[1] + ".child").write_text(str(child.pid))
    print("held", flush=True)
    time.sleep(600)
"""


def holder(path: Path, *more: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), *more], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    process.stdout.close()
    return process


def test_the_second_run_says_who_holds_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lock"
    process = holder(path)
    try:
        with pytest.raises(ToolError) as caught, hold(path):
            pass
    finally:
        process.kill()
        process.wait()
    told = re.fullmatch(
        r"another run holds this folder: pid (\d+), since (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)",
        caught.value.what,
    )
    assert told is not None
    assert int(told[1]) == process.pid
    assert caught.value.where == str(path.parent)


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = holder(path)
    process.kill()
    process.wait()
    with hold(path):
        assert str(os.getpid()) in path.read_text()
    assert path.read_text() == ""


def kill_child(path: Path) -> None:
    os.kill(int(path.with_name("lock.child").read_text()), signal.SIGKILL)


def test_the_next_run_waits_for_the_last_processes_of_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    process = holder(path, "600")
    os.kill(process.pid, signal.SIGKILL)  # not reaped yet: a zombie does not count as alive
    begin = time.monotonic()
    killed: list[float] = []
    sleep = time.sleep

    def wait(seconds: float) -> None:
        sleep(seconds)
        if not killed and time.monotonic() > begin + 2 * hold_module._DYING:
            kill_child(path)
            killed.append(seconds)

    monkeypatch.setattr(time, "sleep", wait)
    with hold(path):
        assert killed, "longer than it waits for one that may still be alive"
    process.wait()


def test_it_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold_module, "_LAST_BREATH", 0.2)
    path = tmp_path / "lock"
    process = holder(path, "600")
    process.kill()
    process.wait()
    try:
        with pytest.raises(ToolError, match="a process of it does not end"), hold(path):
            pass
    finally:
        kill_child(path)
    assert wait_until(lambda: _free(path))


def _free(path: Path) -> bool:
    try:
        with hold(path):
            return True
    except ToolError:
        return False


def test_a_lock_without_a_name_in_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = holder(path)
    path.write_text("")
    with pytest.raises(ToolError, match="another run holds this folder;"), hold(path):
        pass
    process.kill()
    process.wait()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="cannot write here"), hold(tmp_path / "file" / "lock"):
        pass
