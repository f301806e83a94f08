"""A worker may die in any way it likes; what it had said by then is kept, and nothing is left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tipcheck.backends import isolation
from tipcheck.backends.isolation import WorkerEnd, run_worker
from tipcheck.errors import ToolError

WORKER = "tests.backends.workers"


@pytest.fixture(autouse=True)
def _find_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, isolation.SEARCH_PATH["PYTHONPATH"]])
    monkeypatch.setattr(isolation, "SEARCH_PATH", {"PYTHONPATH": path})


def run(behaviour: str, time_limit: float = 30.0) -> WorkerEnd:
    return run_worker(WORKER, {"do": behaviour}, time_limit=time_limit)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2] != "Z"


def test_a_worker_that_ends_well() -> None:
    heard: list[dict[str, object]] = []
    end = run_worker(WORKER, {"do": "nothing"}, time_limit=30, on_message=heard.append)
    assert end.died == ""
    assert end.exit_code == 0
    assert end.messages[0]["echo"] == {"do": "nothing"}
    assert tuple(heard) == end.messages


def test_a_segfault_is_named_and_what_was_said_is_kept() -> None:
    end = run("segfault")
    assert (end.signal, end.exit_code, end.timed_out) == ("SIGSEGV", None, False)
    assert end.died == "died on SIGSEGV"
    assert len(end.messages) == 1
    assert end.last_lines[-1] == "about to go"


def test_an_exit_code_is_told_with_the_last_words() -> None:
    end = run("exit")
    assert (end.exit_code, end.signal) == (7, None)
    assert end.died == "exited with code 7 (giving up)"


def test_an_exception_is_in_the_last_lines() -> None:
    end = run("raise")
    assert end.exit_code == 1
    assert end.last_lines[-1] == "ValueError: no such thing"


def test_a_hanging_worker_is_ended_with_its_children() -> None:
    start = time.monotonic()
    end = run("hang", time_limit=2.0)
    assert time.monotonic() - start < 20
    assert end.timed_out
    assert end.died == "ran out of time"
    for pid in (end.messages[0]["pid"], end.messages[1]["child"]):
        deadline = time.monotonic() + 10
        while is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not is_alive(pid)


def test_a_child_that_stays_behind_holds_nobody_up() -> None:
    start = time.monotonic()
    end = run("leave a child", time_limit=60.0)
    assert time.monotonic() - start < 30
    assert not end.timed_out
    assert end.exit_code == 0


def test_much_output_and_bytes_that_are_no_text() -> None:
    end = run("print")
    assert end.exit_code == 0
    assert end.last_lines[-1] == "�� not text"
    assert len(end.last_lines) == isolation._LAST_LINES


def test_a_worker_has_its_environment_and_an_empty_folder() -> None:
    end = run_worker(WORKER, {"do": "environment"}, time_limit=30, env={"TIPCHECK_TEST": "yes"})
    assert end.messages[1] == {"set": "yes", "files": []}


def test_a_module_that_is_not_there() -> None:
    end = run_worker("tests.backends.nowhere", {"do": "x" * 200_000}, time_limit=30)
    assert end.messages == ()
    assert "No module named" in end.died


def test_a_python_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(ToolError, match="cannot start a worker process"):
        run("nothing")


def test_signals_without_a_name() -> None:
    assert isolation._signal_name(-63) == "signal 63"
    assert isolation._signal_name(0) is None
