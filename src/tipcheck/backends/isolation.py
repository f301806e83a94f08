"""Runs a module in a worker process that may crash, hang or print as it likes.

The worker gets its request on standard input and answers with lines of JSON on a pipe of its own,
so that nothing a framework prints can be taken for an answer, and everything it said before it died
is kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from tipcheck.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LAST_LINES = 20
_TAIL_BYTES = 16_384


@dataclass(frozen=True)
class WorkerEnd:
    """How a worker ended, and what it had said by then.

    Attributes:
        messages: everything it answered.
        exit_code: None when it died on a signal or had to be ended.
        signal: name of the signal it died on, such as ``SIGSEGV``.
        timed_out: it was ended because its time was up.
        last_lines: the end of what it printed.
    """

    messages: tuple[dict[str, Any], ...]
    exit_code: int | None
    signal: str | None
    timed_out: bool
    last_lines: tuple[str, ...]

    @property
    def died(self) -> str:
        """Why it ended early, in words; empty when it ended by itself with code 0."""
        if self.timed_out:
            return "ran out of time"
        if self.signal:
            return f"died on {self.signal}"
        if self.exit_code:
            last = f" ({self.last_lines[-1]})" if self.last_lines else ""
            return f"exited with code {self.exit_code}{last}"
        return ""


def run_worker(
    module: str,
    request: Mapping[str, object],
    *,
    time_limit: float,
    env: Mapping[str, str] | None = None,
    on_message: Callable[[dict[str, Any]], None] | None = None,
) -> WorkerEnd:
    """Run ``python -m module`` and collect its answers.

    Args:
        module: a module that calls ``answer_request`` when run.
        request: what it is to do.
        time_limit: seconds after which it is killed, with every process it started.
        env: variables set on top of this process's own.
        on_message: called with each answer as it comes in.
    """
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as folder:
        try:
            worker = subprocess.Popen(
                [sys.executable, "-m", module, str(writer)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,  # nothing lying about where the user stands may shadow a module
                env={**os.environ, **SEARCH_PATH, **(env or {})},
                pass_fds=(writer,),
                start_new_session=True,
            )
        except OSError as error:
            os.close(reader)
            raise ToolError(f"cannot start a worker process ({error})") from None
        finally:
            os.close(writer)
        with worker, open(reader, "rb", buffering=0) as answers:  # noqa: PTH123 - a descriptor
            try:
                _send(worker, request)
                messages, timed_out = _collect(worker, answers, time_limit, on_message)
            finally:
                _end_group(worker)
        return WorkerEnd(
            messages=tuple(messages),
            exit_code=worker.returncode if worker.returncode >= 0 else None,
            signal=_signal_name(worker.returncode) if not timed_out else None,
            timed_out=timed_out,
            last_lines=_tail(output),
        )


def answer_request(
    work: Callable[[dict[str, Any], Callable[[dict[str, Any]], None]], None],
) -> None:
    """Be a worker: read the request, and give ``work`` the function to answer with."""
    request = json.load(sys.stdin)
    with open(int(sys.argv[1]), "w", encoding="utf-8") as pipe:  # noqa: PTH123 - a descriptor

        def answer(message: dict[str, Any]) -> None:
            pipe.write(json.dumps(message) + "\n")
            pipe.flush()

        work(request, answer)


SEARCH_PATH = {"PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path if path)}
"""Workers find modules where this process does, wherever they stand."""


def _send(worker: subprocess.Popen[bytes], request: Mapping[str, object]) -> None:
    assert worker.stdin is not None  # noqa: S101 - it was opened as a pipe
    with contextlib.suppress(BrokenPipeError):  # it died already; its end will say why
        worker.stdin.write(json.dumps(request).encode())
    with contextlib.suppress(BrokenPipeError):
        worker.stdin.close()


def _collect(
    worker: subprocess.Popen[bytes],
    answers: IO[bytes],
    time_limit: float,
    on_message: Callable[[dict[str, Any]], None] | None,
) -> tuple[list[dict[str, Any]], bool]:
    messages: list[dict[str, Any]] = []
    deadline = time.monotonic() + time_limit
    pending = b""
    while time.monotonic() < deadline:
        ready, _, _ = select.select([answers], [], [], min(0.2, time_limit))
        if not ready:
            if worker.poll() is not None:
                return messages, False  # ended, but something it started keeps the pipe open
            continue
        chunk = answers.read(65_536)
        if not chunk:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(max(0.1, deadline - time.monotonic()))
                return messages, False
            break
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            messages.append(json.loads(line))
            if on_message:
                on_message(messages[-1])
    return messages, True


def _end_group(worker: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def _signal_name(code: int) -> str | None:
    if code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _tail(output: IO[bytes]) -> tuple[str, ...]:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _TAIL_BYTES))
    lines = output.read().decode(errors="replace").splitlines()
    return tuple(line.rstrip() for line in lines if line.strip())[-_LAST_LINES:]
