"""A supervisor runs here inside the test's process; the keeper's tests run it as it is used."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.step_runner.conftest import Jobs, wait_until
from tipcheck.step_runner import supervisor as supervisor_module
from tipcheck.step_runner.contract import Job
from tipcheck.step_runner.supervisor import (
    _NATURAL_END,
    StopFlag,
    Supervisor,
    explain,
    find_program,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


# Python 3.12 warns of forks beside threads; here the threads belong to the tests.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@pytest.fixture
def lifeline() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    before = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    StopFlag.raised = False
    yield read, write
    StopFlag.raised = False
    signal.signal(signal.SIGCHLD, before)
    for descriptor in (read, write):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def fields_of(job: Job) -> dict[str, Any]:
    return {**{field.name: getattr(job, field.name) for field in dataclasses.fields(job)}, "id": 1}


def supervise(job: Job, lifeline: tuple[int, int]) -> dict[str, Any]:
    return Supervisor(fields_of(job), lifeline[0]).run()


class LimitedOnceUp(Supervisor):
    """Its step's time begins when the step has made the file ``up``."""

    def _keep_deadlines(self) -> None:
        limit = self._job["limit"]
        if limit is not None and not Path(self._job["cwd"], "up").exists():
            self._begin = time.monotonic()
            self._term_at = self._begin + limit
        super()._keep_deadlines()


def wait_for_the_step(supervisor: Supervisor) -> None:
    """Wait until the step's own process has ended, and leave it to be reaped."""
    os.waitid(os.P_PID, supervisor._main, os.WEXITED | os.WNOWAIT)


def test_a_step_that_passes(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    job = jobs.shell("echo out; echo err >&2; printf %s last")
    record = supervise(job, lifeline)
    assert record["exit_code"] == 0
    assert record["cut"] == ""
    assert record["peak_memory_bytes"] > 1_000_000
    assert record["seconds"] > 0
    assert jobs.read(job) == "out\nerr\nlast"


def test_argv_and_environment_arrive_exactly(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    odd = [
        "$(touch x)",
        "; touch x",
        "`touch x`",
        "a|b",
        "'",
        '"',
        "",
        " ",
        "*",
        "ü",
        "\n",
        "\udcff",
    ]
    code = "import os, sys; print(ascii([os.fsencode(a) for a in sys.argv[1:]]), os.environ['ODD'])"
    job = jobs.make(sys.executable, "-c", code, *odd, env={"ODD": "$HOME\n|"})
    record = supervise(job, lifeline)
    assert record["exit_code"] == 0
    assert jobs.read(job) == f"{[os.fsencode(word) for word in odd]!a} $HOME\n|\n"
    assert not (jobs.folder / "x").exists()


def test_signals_reach_the_step_as_usual(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    code = "import signal as s; print([s.getsignal(n) == s.SIG_DFL for n in (15, 17)])"
    job = jobs.make(sys.executable, "-c", code)
    supervise(job, lifeline)
    assert jobs.read(job) == "[True, True]\n"
    pipe = jobs.shell("yes | head -1")
    supervise(pipe, lifeline)
    assert jobs.read(pipe) == "y\n", "a broken pipe has to end `yes` in silence"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("no-such-program",), "cannot start no-such-program: command not found"),
        (("./missing.sh",), "cannot start ./missing.sh: No such file or directory"),
        (("./plain.txt",), "cannot start ./plain.txt: Permission denied"),
        (("echo", "x" * 200_000), "number 1, has 200,000 bytes"),
        (("echo", "a\0b"), "embedded null byte"),
    ],
)
def test_a_step_that_cannot_start_says_why(
    jobs: Jobs, lifeline: tuple[int, int], argv: tuple[str, ...], words: str
) -> None:
    (jobs.folder / "plain.txt").write_text("text")
    job = jobs.make(*argv)
    record = supervise(job, lifeline)
    assert words in record["trouble"]
    assert "exit_code" not in record
    assert words in jobs.read(job)


def test_a_missing_working_directory_is_named(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    record = supervise(jobs.make("true", cwd="/no/where"), lifeline)
    assert record["trouble"] == (
        "cannot enter its working directory /no/where: No such file or directory"
    )


def test_a_log_that_cannot_be_made(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    (jobs.folder / "file").write_text("")
    record = supervise(jobs.make("true", log=str(jobs.folder / "file" / "x.log")), lifeline)
    assert "cannot write its log" in record["trouble"]


def test_a_process_that_cannot_be_forked(
    jobs: Jobs, lifeline: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    record = supervise(jobs.make("true"), lifeline)
    assert record["trouble"] == "cannot start a process: Resource temporarily unavailable"


def test_a_step_that_dies_on_a_signal(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    record = supervise(jobs.shell("kill -SEGV $$"), lifeline)
    assert record["signal"] == signal.SIGSEGV
    assert "exit_code" not in record


def test_time_is_over(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    job = jobs.shell("echo begun; touch up; sleep 600", limit=0.2)
    record = LimitedOnceUp(fields_of(job), lifeline[0]).run()
    assert (record["cut"], record["signal"]) == ("timeout", signal.SIGTERM)
    assert record["seconds"] >= 0.2
    told = r"begun\ntipcheck: ended after \d+\.\d s, its time limit is 0.2 s\n"
    assert re.fullmatch(told, jobs.read(job))


def test_nothing_survives_that_ignores_sigterm_or_leaves_the_group(
    jobs: Jobs, lifeline: tuple[int, int]
) -> None:
    stubborn = "trap '' TERM; while :; do sleep 0.05; done"
    code = f'setsid sh -c "{stubborn}" & (setsid sh -c "{stubborn}" &) ; touch up; {stubborn}'
    code = f"trap '' TERM; {code}"
    record = LimitedOnceUp(fields_of(jobs.shell(code, limit=0.3)), lifeline[0]).run()
    assert (record["cut"], record["signal"]) == ("timeout", signal.SIGKILL)


def test_a_child_that_forks_faster_than_it_is_killed(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    code = "trap '' TERM; f() { (sleep 0.02; f) & }; f; f; f; touch up; sleep 600"
    record = LimitedOnceUp(fields_of(jobs.shell(code, limit=0.3)), lifeline[0]).run()
    assert record["cut"] == "timeout"


def test_what_a_step_leaves_behind_is_ended_and_told(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    job = jobs.shell("setsid sleep 600 & echo done")
    begin = time.monotonic()
    record = supervise(job, lifeline)
    took = time.monotonic() - begin
    assert (record["exit_code"], record["left_behind"]) == (0, 1)
    assert jobs.read(job) == "done\ntipcheck: ended 1 process(es) that the step had left running\n"
    assert record["seconds"] <= took - _NATURAL_END, "the time of the step, not of the cleaning"


def test_a_helper_that_ends_by_itself_is_left_in_peace(
    jobs: Jobs, lifeline: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "_NATURAL_END", 120.0)
    job = jobs.shell("(sleep 0.1; echo cleaned) & echo done")
    record = supervise(job, lifeline)
    assert record["left_behind"] == 0
    assert jobs.read(job) == "done\ncleaned\n"


def test_memory_is_that_of_all_processes_together(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    class Patient(Supervisor):
        """Lets the step end as soon as it has measured what it should."""

        def _sample(self, now: float) -> None:
            super()._sample(now)
            if self._peak > 170_000_000:
                (jobs.folder / "measured").touch()

    code = "b = bytearray(60_000_000)\nimport os, time\nwhile not os.path.exists('measured'): "
    code += "time.sleep(0.01)"
    job = jobs.shell(f'for i in 1 2 3; do {sys.executable} -S -c "{code}" & done; wait', limit=120)
    record = Patient(fields_of(job), lifeline[0]).run()
    assert record["cut"] == ""
    assert record["peak_memory_bytes"] > 170_000_000


def test_stopping(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    handler = signal.signal(signal.SIGTERM, lambda _n, _f: setattr(StopFlag, "raised", True))
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    job = jobs.shell("sleep 600")
    try:
        record = supervise(job, lifeline)
    finally:
        signal.signal(signal.SIGTERM, handler)
        timer.join()
    assert record["cut"] == "stopped"
    assert "because the run was stopped" in jobs.read(job)


def test_the_tool_dies(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    timer = threading.Timer(0.2, os.close, (lifeline[1],))
    timer.start()
    record = supervise(jobs.shell("trap '' TERM; sleep 600", grace=1e6), lifeline)
    assert (record["cut"], record["signal"]) == ("stopped", signal.SIGKILL)
    assert record["seconds"] < 600, "neither the step nor its grace is waited for"
    timer.join()


def test_a_step_that_had_ended_when_the_tool_died_has_its_result(
    jobs: Jobs, lifeline: tuple[int, int]
) -> None:
    os.close(lifeline[1])

    class Late(Supervisor):
        def _start(self) -> str:
            trouble = super()._start()
            wait_for_the_step(self)
            return trouble

    record = Late(fields_of(jobs.make("true")), lifeline[0]).run()
    assert (record["cut"], record["exit_code"]) == ("", 0)


def test_what_a_step_left_is_counted_though_the_tool_died_as_it_ended(
    jobs: Jobs, lifeline: tuple[int, int]
) -> None:
    os.close(lifeline[1])

    class Unlucky(Supervisor):
        """Its step ends between the last look at it and the news that the tool is gone."""

        def _start(self) -> str:
            trouble = super()._start()
            wait_for_the_step(self)
            return trouble

        def _reap(self) -> None:
            if self._status is not None:
                super()._reap()

    job = jobs.shell("setsid sleep 600 & exit 0", limit=10_000)
    record = Unlucky(fields_of(job), lifeline[0]).run()
    assert (record["cut"], record["exit_code"], record["left_behind"]) == ("", 0, 1)


def test_the_tool_dies_while_leftovers_are_ended(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    class Dying(Supervisor):
        def _main_ended(self, status: int) -> None:
            super()._main_ended(status)
            os.close(lifeline[1])

    record = Dying(fields_of(jobs.shell("setsid sleep 600 & exit 3")), lifeline[0]).run()
    assert (record["cut"], record["exit_code"]) == ("", 3)


def test_a_gigabyte_is_cut_with_its_beginning_and_end(
    jobs: Jobs, lifeline: tuple[int, int]
) -> None:
    code = "echo first; head -c 100000000 /dev/zero; echo; echo ValueError: last; exit 1"
    job = jobs.shell(code, log_limit=1_000_000)
    record = supervise(job, lifeline)
    assert record["exit_code"] == 1
    assert "99,000" in record["log_note"]
    text = jobs.read(job)
    assert len(text) < 1_001_000
    assert text.startswith("first\n")
    assert "this log may hold 1,000,000 bytes" in text
    assert text.endswith("ValueError: last\n")


def test_a_full_disk_loses_output_but_not_the_step(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    (jobs.folder / "full.log").symlink_to("/dev/full")
    job = jobs.shell("echo ValueError: bad; exit 4", log=str(jobs.folder / "full.log"))
    record = supervise(job, lifeline)
    assert record["exit_code"] == 4
    assert record["log_note"] == "the log is incomplete: No space left on device"
    assert record["last_words"] == "ValueError: bad\n"


def test_a_step_that_closes_its_output_goes_on(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    record = supervise(jobs.shell("exec >&- 2>&-; sleep 0.3; exit 5"), lifeline)
    assert record["exit_code"] == 5


def test_a_log_is_written_live(jobs: Jobs, lifeline: tuple[int, int]) -> None:
    job = jobs.shell(f"echo one; until [ -e {jobs.folder}/seen ]; do sleep 0.01; done", limit=300)

    def look() -> None:
        if wait_until(lambda: Path(job.log).exists() and jobs.read(job) == "one\n"):
            (jobs.folder / "seen").touch()

    watcher = threading.Thread(target=look)
    watcher.start()
    assert supervise(job, lifeline)["exit_code"] == 0
    watcher.join()


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("echo 'tipcheck: hollow: no op ran in low precision'", "no op ran in low precision"),
        ("printf 'x\ntipcheck: hollow: late' >&2", "late"),
        ("echo 'tipcheck: hollow:'", "it said so without a reason"),
        ("echo 'they say tipcheck: hollow: no'", ""),
        (
            "echo 'UserWarning: amp_guard can only be enabled on CUDAPlace, so no effect'",
            "paddle switched AMP off: auto_cast has no effect on this device",
        ),
    ],
)
def test_a_step_says_that_it_was_hollow(
    jobs: Jobs, lifeline: tuple[int, int], code: str, why: str
) -> None:
    assert supervise(jobs.shell(code), lifeline)["hollow"] == why


def test_where_a_program_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, mode in (("a", 0o644), ("b", 0o755), ("c", 0o755)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tool").write_text("#!/bin/sh\n")
        (tmp_path / folder / "tool").chmod(mode)
    (tmp_path / "d" / "tool").mkdir(parents=True)
    assert find_program("tool", "a:b:c") == "b/tool"
    assert find_program("tool", "none:d:c") == "c/tool"
    assert find_program("tool", "") is None
    assert find_program("b", ":a") is None
    assert find_program("./tool", "b") == "./tool"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(7, "Argument list too long"), "number 1, has 5 bytes)"),
        (FileNotFoundError(2, "No such file or directory"), "cannot start tool: command not found"),
        (PermissionError(13, "Permission denied"), "cannot start tool: Permission denied"),
        (ValueError("embedded null byte"), "cannot start tool: embedded null byte"),
    ],
)
def test_why_a_program_did_not_start(error: Exception, words: str) -> None:
    assert explain("cannot start tool", ["tool", "12345"], error).endswith(words)
