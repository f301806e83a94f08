"""What every engine has to do, whatever it is made of: one contract, tested on each of them."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.step_runner.conftest import MARK, Jobs, marked_processes, wait_until
from tipcheck.step_runner.local import LocalEngine
from tipcheck.step_runner.warm import WarmEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tipcheck.step_runner.contract import End, Engine, Job

ENGINES: dict[str, Callable[[], AbstractContextManager[Engine]]] = {
    "local": LocalEngine,
    "warm": lambda: WarmEngine(preload="json"),
}


RAY_MARKS = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(params=[*ENGINES, pytest.param("ray", marks=RAY_MARKS)])
def engine(request: pytest.FixtureRequest, mark: str) -> Iterator[Engine]:
    if request.param == "ray":
        running = request.getfixturevalue("ray_engine")
        assert running.name == "ray"
        yield running
        return
    with ENGINES[request.param]() as running:
        assert running.name == request.param
        yield running


def collect(engine: Engine, number: int, seconds: float = 300) -> dict[str, End]:
    ends: dict[str, End] = {}
    deadline = time.monotonic() + seconds
    while len(ends) < number and time.monotonic() < deadline:
        ends.update({end.key: end for end in engine.wait(0.2)})
    assert len(ends) == number
    return ends


def run_one(engine: Engine, job: Job) -> End:
    engine.start(job)
    return collect(engine, 1)[job.key]


def several(jobs: Jobs, codes: Sequence[str], **more: object) -> list[Job]:
    return [
        jobs.shell(code, key=str(n), log=str(jobs.folder / f"{n}.log"), **more)
        for n, code in enumerate(codes)
    ]


def test_a_passing_and_a_failing_step(engine: Engine, jobs: Jobs) -> None:
    good, bad = several(jobs, ["echo fine", "echo bad >&2; exit 3"])
    engine.start(good)
    engine.start(bad)
    ends = collect(engine, 2)
    assert (ends["0"].exit_code, ends["1"].exit_code) == (0, 3)
    assert (jobs.read(good), jobs.read(bad)) == ("fine\n", "bad\n")
    assert all(end.seconds > 0 and (end.peak_memory_bytes or 0) > 0 for end in ends.values())


def test_a_python_script_with_arguments(engine: Engine, jobs: Jobs) -> None:
    (jobs.folder / "script.py").write_text(
        "import os, sys\nfrom pathlib import Path\n"
        "print(__name__, sys.argv[1:], Path(__file__).name, os.getcwd(), os.environ['K'])\n"
        "print('to stderr', file=sys.stderr)\nsys.exit(7)\n"
    )
    job = jobs.make(sys.executable, "script.py", "--a=$(touch x)", env={**os.environ, "K": "v"})
    end = run_one(engine, job)
    assert end.exit_code == 7
    out = sorted(jobs.read(job).splitlines())
    assert out == [
        f"__main__ ['--a=$(touch x)'] script.py {jobs.folder} v",
        "to stderr",
    ]


def test_an_exception_ends_with_its_traceback_in_the_log(engine: Engine, jobs: Jobs) -> None:
    (jobs.folder / "script.py").write_text("def f():\n    raise KeyError('k')\nf()\n")
    job = jobs.make(sys.executable, "script.py")
    assert run_one(engine, job).exit_code == 1
    text = jobs.read(job)
    first, place, *_ = text.splitlines()
    assert first == "Traceback (most recent call last):"
    assert place == f'  File "{jobs.folder}/script.py", line 3, in <module>'
    assert text.endswith("KeyError: 'k'\n")


def test_a_crash_says_which_signal(engine: Engine, jobs: Jobs) -> None:
    (jobs.folder / "script.py").write_text("import os\nprint('before')\nos.abort()\n")
    job = jobs.make(sys.executable, "script.py")
    end = run_one(engine, job)
    assert (end.signal, end.exit_code) == (signal.SIGABRT, None)
    assert jobs.read(job).startswith("before\n"), "what was printed before a crash is kept"


def test_steps_run_side_by_side(engine: Engine, jobs: Jobs) -> None:
    met = f"touch {jobs.folder}/met_$$; until [ $(ls {jobs.folder} | grep -c met_) -ge 2 ]"
    for job in several(jobs, [f"{met}; do sleep 0.01; done"] * 4):
        engine.start(job)
    ends = collect(engine, 4)
    assert [end.exit_code for end in ends.values()] == [0] * 4, "each waits for another to begin"


def test_a_time_limit_ends_the_whole_tree(engine: Engine, jobs: Jobs, mark: str) -> None:
    code = "trap '' TERM; setsid sleep 600 & sleep 600"
    end = run_one(engine, jobs.shell(code, limit=0.3))
    assert end.cut == "timeout"
    assert not marked(mark, "sleep 600")


def test_a_program_that_is_not_there(engine: Engine, jobs: Jobs) -> None:
    end = run_one(engine, jobs.make("python9.9", "x.py"))
    assert end.trouble == "cannot start python9.9: command not found"
    assert end.exit_code is None


def test_stopping_ends_all_steps_in_order(engine: Engine, jobs: Jobs) -> None:
    polite = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    stubborn = "trap '' TERM; echo up; sleep 600"
    all_jobs = [
        jobs.shell(polite, key="polite", log=str(jobs.folder / "polite.log"), grace=300),
        jobs.shell(stubborn, key="stubborn", log=str(jobs.folder / "stubborn.log")),
    ]
    for job in all_jobs:
        engine.start(job)
    assert wait_until(
        lambda: (
            not engine.wait(0.01)
            and all(Path(job.log).exists() and jobs.read(job) for job in all_jobs)
        )
    )
    engine.stop()
    ends = collect(engine, 2)
    assert all(end.interrupted for end in ends.values())
    assert "bye" in jobs.read(all_jobs[0])


def test_a_step_that_is_stopped_while_it_starts(engine: Engine, jobs: Jobs) -> None:
    for job in several(jobs, ["sleep 600"] * 5, grace=5):
        engine.start(job)
        engine.stop()
    assert all(end.interrupted for end in collect(engine, 5).values())


def test_leaving_ends_what_runs_at_once(jobs: Jobs, mark: str) -> None:
    for make in ENGINES.values():
        with make() as engine:
            engine.start(jobs.shell("trap '' TERM; echo up; setsid sleep 600", grace=600))
            assert wait_until(lambda: marked(mark, "sleep 600"))
        assert not marked_processes(mark)


def test_the_attempt_comes_back(engine: Engine, jobs: Jobs) -> None:
    assert run_one(engine, jobs.make("true", attempt=77)).attempt == 77


def test_binary_output_and_a_hollow_line(engine: Engine, jobs: Jobs) -> None:
    code = r"printf '\000\377\033[31m\n'; echo 'tipcheck: hollow: nothing quantised'"
    job = jobs.shell(code)
    assert run_one(engine, job).hollow == "nothing quantised"
    assert Path(job.log).read_bytes().startswith(b"\0\xff\x1b[31m\n")


def test_two_hundred_steps_one_after_another(engine: Engine, jobs: Jobs) -> None:
    for job in several(jobs, ["exit 0"] * 200):
        assert run_one(engine, job).exit_code == 0


def marked(mark: str, word: str) -> list[str]:
    return [line for line in marked_processes(mark) if word in line]


# What only a local machine can show ------------------------------------------------------------


def local_processes(mark: str) -> dict[str, int]:
    """Return the keeper and its supervisors by their place in the process tree."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if f"{MARK}={mark}".encode() not in (entry / "environ").read_bytes():
                continue
            line = (entry / "cmdline").read_bytes().split(b"\0")
            if b"-c" in line and any(b"keeper" in word for word in line):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found["keeper" if parent == os.getpid() else "supervisor"] = int(entry.name)
    return found


def test_a_killed_supervisor_leaves_nothing_and_is_reported(jobs: Jobs, mark: str) -> None:
    with LocalEngine() as engine:
        engine.start(jobs.shell("trap '' TERM HUP; setsid sleep 600 & echo up; sleep 600"))
        assert wait_until(lambda: marked(mark, "sleep 600"))
        os.kill(local_processes(mark)["supervisor"], signal.SIGKILL)
        end = collect(engine, 1)["job"]
        assert end.trouble == "the process that watched over this step was killed"
        assert wait_until(lambda: not marked(mark, "sleep 600"))


def test_a_killed_keeper_is_an_error_of_the_tool(jobs: Jobs, mark: str) -> None:
    from tipcheck.errors import ToolError  # noqa: PLC0415 - only here

    with pytest.raises(ToolError, match="was killed"), LocalEngine() as engine:  # noqa: PT012
        engine.start(jobs.shell("sleep 600"))
        assert wait_until(lambda: marked(mark, "sleep 600"))
        os.kill(local_processes(mark)["keeper"], signal.SIGKILL)
        time.sleep(0.2)
        for _ in range(100):
            engine.start(jobs.shell("true"))
            engine.wait(0.1)
    assert wait_until(lambda: not marked(mark, "sleep 600"))


def test_the_keeper_ignores_signals_meant_for_the_tool(jobs: Jobs, mark: str) -> None:
    with LocalEngine() as engine:
        run_one(engine, jobs.make("true"))
        keeper = local_processes(mark)["keeper"]
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(keeper, number)
        assert run_one(engine, jobs.make("true")).exit_code == 0


def test_a_keeper_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    from tipcheck.errors import ToolError  # noqa: PLC0415 - only here

    monkeypatch.setattr(LocalEngine, "_interpreter", lambda _self: ["/no/python"])
    with pytest.raises(ToolError, match="cannot start a process"), LocalEngine():
        pass
