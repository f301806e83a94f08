"""What only the warm engine does: warming up, falling back, and looking like a fresh process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.step_runner.conftest import Jobs, wait_until
from tests.step_runner.test_engines import collect, run_one
from tipcheck.step_runner.contract import Job
from tipcheck.step_runner.warm import _MOST_SERVERS, WarmEngine

# Says whether it was forked: its command line is the server's.
WARM = (
    "line = open('/proc/self/cmdline').read(); "
    "print('warm' if 'warm_server' in line else 'fresh')\n"
)
THREAD = """
import threading, time
threading.Thread(target=lambda: (time.sleep(0.1), print("t"))).start()
print("main")
"""
LOOK = """
import builtins, json, os, random, signal, sys, threading
print(__name__, __file__, __spec__, __builtins__ is builtins, __cached__)
print(sys.argv, sys.path[0], sys.path.count(sys.path[0]), 'tipcheck' in ' '.join(sys.path[1:]))
print(sorted(os.environ.items()) == sorted(json.loads(sys.argv[-1]).items()))
print([str(signal.getsignal(n)) for n in (2, 13, 15, 17, 25)])
print(sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering, sys.stderr.errors)
print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))
print(threading.current_thread() is threading.main_thread(), sys.stdin.read() == '')
print(os.getpid() == os.getsid(0), sys.modules['__main__'].__dict__ is globals())
"""


@pytest.fixture
def engine(mark: str) -> Iterator[WarmEngine]:
    running = WarmEngine(preload="this")
    with running:
        yield running


def script(jobs: Jobs, text: str = WARM, name: str = "script.py", **more: object) -> Job:
    (jobs.folder / name).write_text(text)
    return jobs.make(sys.executable, name, **more)


def test_a_script_is_forked_and_one_environment_is_warmed_once(
    engine: WarmEngine, jobs: Jobs
) -> None:
    for _ in range(3):
        job = script(jobs)
        assert run_one(engine, job).exit_code == 0
        assert jobs.read(job) == "warm\n"
    assert len(engine._servers) == 1


def test_a_forked_script_sees_what_a_fresh_one_sees(engine: WarmEngine, jobs: Jobs) -> None:
    import json  # noqa: PLC0415 - the name is used in the script's text too

    env = {**os.environ, "X": "1"}
    (jobs.folder / "sub").mkdir()
    (jobs.folder / "sub/look.py").write_text(LOOK)
    job = jobs.make(sys.executable, "sub/look.py", json.dumps(env), env=env)
    assert run_one(engine, job).exit_code == 0
    forked = jobs.read(job).splitlines()
    fresh = subprocess.run(
        job.argv, env=env, cwd=job.cwd, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE, text=True, check=True, start_new_session=True,
    ).stdout.splitlines()  # fmt: skip
    fresh[0] = fresh[0].replace(str(type(None)), "None")
    assert forked == fresh


@pytest.mark.parametrize(
    ("text", "code", "out"),
    [
        ("raise SystemExit", 0, ""),
        ("raise SystemExit('told')", 1, "told\n"),
        ("raise SystemExit(300)", 44, ""),
        ("import atexit; atexit.register(print, 'bye'); print('hi')", 0, "hi\nbye\n"),
        (THREAD, 0, "main\nt\n"),
        ("import os; os.fork() or os._exit(0); os.wait(); print('forked')", 0, "forked\n"),
        ("print(\n", 1, "SyntaxError"),
    ],
)  # fmt: skip
def test_a_script_ends_as_usual(
    engine: WarmEngine, jobs: Jobs, text: str, code: int, out: str
) -> None:
    job = script(jobs, text)
    assert run_one(engine, job).exit_code == code
    told = jobs.read(job)
    assert told == out or (out == "SyntaxError" and out in told)


def test_unseeded_random_numbers_differ(engine: WarmEngine, jobs: Jobs) -> None:
    told = set()
    for _ in range(3):
        job = script(jobs, "import random; print(random.random())")
        run_one(engine, job)
        told.add(jobs.read(job))
    assert len(told) == 3


def test_unbuffered_output_survives_a_crash(engine: WarmEngine, jobs: Jobs) -> None:
    (jobs.folder / "crash.py").write_text(f"{WARM}import os; os.kill(os.getpid(), 11)")
    job = jobs.make(sys.executable, "-u", "crash.py")
    assert run_one(engine, job).signal == signal.SIGSEGV
    assert jobs.read(job) == "warm\n"


def test_another_environment_gets_another_server_up_to_a_limit(
    engine: WarmEngine, jobs: Jobs
) -> None:
    for number in range(_MOST_SERVERS + 2):
        job = script(jobs, env={**os.environ, "FLAGS_x": str(number)})
        run_one(engine, job)
        assert jobs.read(job) == "warm\n"
    assert len(engine._servers) == _MOST_SERVERS, "idle ones are sent away"


def test_servers_at_work_are_not_sent_away(engine: WarmEngine, jobs: Jobs) -> None:
    wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)\n"
    (jobs.folder / "script.py").write_text(WARM + wait)
    all_jobs = [
        jobs.make(
            sys.executable, "script.py", key=str(n), log=str(jobs.folder / f"{n}.log"),
            env={**os.environ, "FLAGS_x": str(n), "PYTHONUNBUFFERED": "1"},
        )
        for n in range(_MOST_SERVERS + 1)
    ]  # fmt: skip
    for job in all_jobs:
        engine.start(job)
    assert wait_until(lambda: not engine.wait(0.01) and all(said(jobs, job) for job in all_jobs))
    (jobs.folder / "go").touch()
    collect(engine, len(all_jobs))
    assert [jobs.read(job) for job in all_jobs] == ["warm\n"] * _MOST_SERVERS + ["fresh\n"]


def said(jobs: Jobs, job: Job) -> bool:
    return Path(job.log).exists() and bool(jobs.read(job))


def test_a_module_of_the_repo_is_not_taken_from_the_server(engine: WarmEngine, jobs: Jobs) -> None:
    (jobs.folder / "codecs_of_mine.py").write_text("")
    warm = script(jobs)
    run_one(engine, warm)
    assert jobs.read(warm) == "warm\n"
    (jobs.folder / "this.py").write_text("mine = True")
    job = script(jobs, "import this; print(this.mine)")
    assert run_one(engine, job).exit_code == 0
    assert jobs.read(job) == "True\n"


def test_an_interpreter_that_cannot_import_it(jobs: Jobs) -> None:
    with WarmEngine(preload="no_such_module") as engine:
        job = script(jobs)
        assert run_one(engine, job).exit_code == 0
        assert jobs.read(job) == "fresh\n"
        assert run_one(engine, job).exit_code == 0


def test_an_interpreter_that_cannot_be_started(jobs: Jobs) -> None:
    path = jobs.folder / "python3"
    path.write_text("no program")
    path.chmod(0o755)
    script(jobs)
    with WarmEngine(preload="this") as engine:
        end = run_one(engine, jobs.make(str(path), "script.py"))
    assert "Exec format error" in end.trouble


def test_stopping_while_it_warms_up(jobs: Jobs) -> None:
    (jobs.folder / "slow_module.py").write_text("import time; time.sleep(600)")
    env = {**os.environ, "PYTHONPATH": str(jobs.folder)}
    sub = jobs.folder / "sub"
    sub.mkdir()
    (sub / "script.py").write_text(WARM)
    engine = WarmEngine(preload="slow_module")
    with engine:
        engine.start(jobs.make(sys.executable, "sub/script.py", env=env, attempt=4))
        assert engine.wait(0.1) == []
        engine.stop()
        end = collect(engine, 1)["job"]
        assert (end.interrupted, end.attempt) == (True, 4)
    [server] = engine._servers.values()
    assert server.link._process is not None
    assert server.link._process.returncode == -signal.SIGKILL, "its import is not waited for"


def test_an_import_that_never_ends(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    (jobs.folder / "slow_module.py").write_text("import time; time.sleep(600)")
    env = {**os.environ, "PYTHONPATH": str(jobs.folder)}
    (jobs.folder / "sub").mkdir()
    (jobs.folder / "sub" / "script.py").write_text(WARM)
    monkeypatch.setattr("tipcheck.step_runner.warm._IMPORT_WITHIN", 0.5)
    with WarmEngine(preload="slow_module") as engine:
        job = jobs.make(sys.executable, "sub/script.py", env=env)
        assert run_one(engine, job).exit_code == 0
        assert jobs.read(job) == "fresh\n"


def test_a_killed_server_is_reported_and_not_used_again(engine: WarmEngine, jobs: Jobs) -> None:
    job = script(jobs, "open('up', 'w'); import time; time.sleep(600)")
    engine.start(job)
    assert wait_until(lambda: not engine.wait(0.01) and (jobs.folder / "up").exists())
    [server] = engine._servers.values()
    assert server.link._process is not None
    server.link._process.kill()
    [supervisor] = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _is_child_server(entry, server.link._process.pid)
    ]
    os.kill(supervisor, signal.SIGKILL)
    assert collect(engine, 1)["job"].trouble == (
        "the warm process that this step was to be forked from was killed"
    )
    again = script(jobs)
    assert run_one(engine, again).exit_code == 0
    assert jobs.read(again) == "fresh\n"


def _is_child_server(entry: Path, session: int) -> bool:
    try:
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[3]) == session and int(entry.name) != session and fields[0] != "Z"


EXPORT = """
import sys, paddle
assert ('forked' if sys.argv[1] == 'warm' else 'fresh')
paddle.seed(7)
net = paddle.nn.Sequential(paddle.nn.Conv2D(3, 4, 3), paddle.nn.ReLU())
net.eval()
spec = [paddle.static.InputSpec([None, 3, 8, 8])]
paddle.jit.save(net, f"{sys.argv[1]}/inference", input_spec=spec)
print(net(paddle.ones([1, 3, 8, 8])).numpy().sum().item().hex())
"""


@pytest.mark.paddle
def test_a_real_model_is_exported_alike(jobs: Jobs) -> None:
    from tipcheck.step_runner.local import LocalEngine  # noqa: PLC0415 - only here

    told: dict[str, str] = {}
    for engine in (WarmEngine(), LocalEngine()):
        (jobs.folder / "export.py").write_text(EXPORT)
        job = jobs.make(sys.executable, "export.py", engine.name)
        with engine:
            assert run_one(engine, job).exit_code == 0
        told[engine.name] = jobs.read(job).splitlines()[-1]
    assert told["warm"] == told["local"]
    for suffix in ("json", "pdiparams"):
        files = [(jobs.folder / name / f"inference.{suffix}").read_bytes() for name in told]
        assert files[0] == files[1]


CONDITION = """
import os, sys
print("begins")
if len(sys.argv) > 1:
    os.environ[sys.argv[1]] = sys.argv[2]
if "never" in sys.argv:
    os.environ["FLAGS_never"] = "1"
"""


@pytest.mark.parametrize(
    ("arguments", "how"),
    [
        ([], "warm"),
        (["FLAGS_late", "1"], "fresh"),
        (["FLAGS_same", "1"], "warm"),
        (["OF_NO_INTEREST", "1"], "warm"),
    ],
)
def test_a_script_that_sets_variables_below_a_condition(
    engine: WarmEngine, jobs: Jobs, arguments: list[str], how: str
) -> None:
    job = script(jobs, CONDITION + WARM)
    env = {**job.env, "FLAGS_same": "1"}
    job = replace(job, argv=(*job.argv, *arguments), env=env, attempt=7)
    end = run_one(engine, job)
    assert (end.exit_code, end.attempt) == (0, 7)
    assert jobs.read(job) == f"begins\n{how}\n"


def test_after_the_import_a_variable_may_be_set(engine: WarmEngine, jobs: Jobs) -> None:
    text = "import os, this\nif os.getpid():\n    os.environ['FLAGS_late'] = '1'\n"
    job = script(jobs, text + WARM)
    assert run_one(engine, job).exit_code == 0
    assert jobs.read(job).endswith("warm\n")


def test_a_script_that_is_refused_while_the_run_stops(engine: WarmEngine, jobs: Jobs) -> None:
    text = (
        "import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.02)\n"
        "if os.getpid():\n    os.environ['FLAGS_a'] = '1'\n"
    )
    job = script(jobs, text)
    engine.start(job)
    assert wait_until(lambda: engine.wait(0.01) or Path(job.log).exists())
    engine._stopping = True
    (jobs.folder / "go").touch()
    [end] = collect(engine, 1).values()
    assert end.interrupted
