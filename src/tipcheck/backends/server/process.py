"""The process that has imported Paddle once, and forks one child for every stage.

Run as ``python -m tipcheck.backends.server.process ANSWERS`` by ``link``. Jobs come as lines of
JSON on standard input; how each ended goes out on the descriptor ANSWERS. What a job says itself it
writes to a file of its own, so that everything it said before it died is kept. The main thread
imports and forks and does nothing else: what a framework has begun does not survive a fork. A
build for a device does not survive one at all; there every job gets a fresh interpreter.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tipcheck.backends.server.jobs import run_job

_CHUNK = 65_536
_LOOK_EVERY = 0.05
"""Seconds between two looks at children that cannot be waited for."""


@dataclass
class _Child:
    """A job that runs."""

    job: dict[str, Any]
    pid: int
    deadline: float
    timed_out: bool = False


class Server:
    """Starts jobs, watches them, ends those that take too long."""

    def __init__(self, answers: IO[str], *, fork: bool) -> None:
        self._answers = answers
        self._fork = fork
        self._children: dict[int, _Child] = {}

    def serve(self) -> None:
        """Take jobs until the other side has gone; then end what still runs."""
        pending = b""
        while True:
            now = time.monotonic()
            waits = [child.deadline - now for child in self._children.values()]
            watched = [handle for handle in self._children if handle > 0]
            if len(watched) < len(self._children):
                waits.append(_LOOK_EVERY)
            timeout = max(0.0, min([*waits, 60.0]))
            ready, _, _ = select.select([0, *watched], [], [], timeout)
            for handle in [*self._children]:
                if handle in ready or (handle < 0 and _has_ended(-handle)):
                    self._reap(handle)
            self._end_late()
            if 0 not in ready:
                continue
            chunk = os.read(0, _CHUNK)
            if not chunk:
                break
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                self._start(json.loads(line))
        for child in self._children.values():
            _kill(child.pid)

    def _start(self, job: dict[str, Any]) -> None:
        pid = self._forked(job) if self._fork else self._spawned(job)
        handle = _handle_of(pid)
        deadline = time.monotonic() + float(job["time_limit"])
        self._children[handle] = _Child(job, pid, deadline)

    def _forked(self, job: dict[str, Any]) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            _enter(job)
            code = run_job(job)
        except BaseException:  # noqa: BLE001 - the process ends here, whatever it is
            import traceback

            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)  # what a framework takes down at its end is of no use here

    def _spawned(self, job: dict[str, Any]) -> int:
        with Path(job["log"]).open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "tipcheck.backends.server.jobs", json.dumps(job)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=job.get("cwd") or job["folder"],
                start_new_session=True,
            )
        child.returncode = 0  # reaped here, not by subprocess
        return child.pid

    def _reap(self, handle: int) -> None:
        child = self._children.pop(handle)
        _, status, used = os.wait4(child.pid, 0)
        if handle > 0:
            os.close(handle)
        _kill(child.pid)  # the group: whatever it left behind
        code = os.waitstatus_to_exitcode(status)
        self._say(
            {
                "id": child.job["id"],
                "code": code if code >= 0 else None,
                "signal": -code if code < 0 and not child.timed_out else None,
                "timed_out": child.timed_out,
                "peak_kb": used.ru_maxrss,
            }
        )

    def _end_late(self) -> None:
        for child in self._children.values():
            if not child.timed_out and time.monotonic() >= child.deadline:
                child.timed_out = True
                child.deadline = float("inf")
                _kill(child.pid)

    def _say(self, message: dict[str, Any]) -> None:
        self._answers.write(json.dumps(message) + "\n")
        self._answers.flush()


def _enter(job: dict[str, Any]) -> None:
    """Become a process of its own: a session, a log, no descriptor of the server."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.closerange(3, 256)
    os.chdir(job.get("cwd") or job["folder"])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def _handle_of(pid: int) -> int:
    """Return what to wait for a child with; minus its id on kernels that are too old for that."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -pid


def _has_ended(pid: int) -> bool:
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, pid, flags) is not None


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def describe() -> dict[str, Any]:
    """Import Paddle, and say what it is."""
    import zlib  # noqa: F401 - paddle 2.6 crashes if it comes first

    import paddle

    cuda = paddle.version.cuda()
    trt = paddle.inference.get_trt_compile_version()
    device = paddle.is_compiled_with_cuda() or paddle.is_compiled_with_xpu()
    return {
        "version": paddle.version.full_version,
        "cuda": str(cuda) if cuda not in (False, "False") else "",
        "tensorrt": ".".join(map(str, trt)) if any(trt) else "",
        "gpus": paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0,
        "fork": not device and "TIPCHECK_NO_FORK" not in os.environ,
    }


def main() -> None:
    """Be the server."""
    os.environ.setdefault("GLOG_minloglevel", "2")
    with open(int(sys.argv[1]), "w", encoding="utf-8") as answers:  # noqa: PTH123 - a descriptor
        os.set_inheritable(answers.fileno(), False)  # noqa: FBT003
        build = describe()
        answers.write(json.dumps({"build": build}) + "\n")
        answers.flush()
        Server(answers, fork=build["fork"]).serve()


if __name__ == "__main__":
    main()
