"""The near end of a stage server: starts it, sends jobs, says how each ended.

Jobs may be sent from several threads; each waits for its own. A server that dies takes its jobs
with it, which then say so, and the next job finds a new one.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tipcheck.backends.isolation import SEARCH_PATH
from tipcheck.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

_LAST_LINES = 8
_TAIL = 16_384
_IMPORT_WITHIN = 180.0
_FRAME = re.compile(
    r"\s*(-+|C\+\+ Traceback .*|Error Message Summary:|\[(Time|Signal)Info: .*)?\s*$"
)
"""Lines around a crash report of Paddle that say nothing, and would push out what does."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended, and everything it had said by then.

    Attributes:
        messages: its answers.
        died: why it ended early, in words; empty when it ended by itself.
        last_lines: the end of what it printed.
        printed: bytes that it printed.
        peak_kb: the most memory it held, pages shared with the server included.
    """

    messages: tuple[dict[str, Any], ...]
    died: str
    last_lines: tuple[str, ...]
    printed: int = 0
    peak_kb: int = 0

    def answer(self, key: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return the last answer with a key, None without one."""
        found = [message[key] for message in self.messages if key in message]
        return found[-1] if found else None


class StageLink:
    """A stage server, used as a context."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        """Say where jobs leave their files, and what to set for the server."""
        self._folder = folder
        self._env = dict(env or {})
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._server: _Running | None = None
        self.build: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Start the server and wait until Paddle is imported.

        Raises:
            ToolError: it does not start; the message says why.
        """
        self._current()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the server with everything it started."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def run(self, job: Mapping[str, Any], time_limit: float) -> JobEnd:
        """Run one job; returns when it has ended, in whatever way."""
        server = self._current()
        number = next(self._numbers)
        log, said = self._folder / f"job_{number}.log", self._folder / f"job_{number}.jsonl"
        request = dict(job) | {
            "id": number,
            "time_limit": time_limit,
            "log": str(log),
            "answers": str(said),
            "folder": str(self._folder),
        }
        end = server.run(number, request)
        messages = _read_answers(said)
        size = log.stat().st_size if log.exists() else 0
        lines = _tail(log)
        return JobEnd(messages, _how(end, time_limit, lines), lines, size, end.get("peak_kb", 0))

    def _current(self) -> _Running:
        with self._lock:
            if self._server is None or self._server.gone:
                if self._server is not None:
                    self._server.close()
                self._server = _Running(self._folder, self._env)
                self.build = self._server.build
            return self._server


class _Running:
    """One process, and the threads that wait for its jobs."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._log = folder / "server.log"
        reader, writer = os.pipe()
        try:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tipcheck.backends.server.process", str(writer)],
                    stdin=subprocess.PIPE,
                    bufsize=0,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env={**os.environ, **SEARCH_PATH, **_QUIET, **env},
                    pass_fds=(writer,),
                    start_new_session=True,
                )
        except OSError as error:
            os.close(reader)
            raise ToolError(f"cannot start a worker process ({error})") from None
        finally:
            os.close(writer)
        self._ends: dict[int, dict[str, Any]] = {}
        self._news = threading.Condition()
        self.gone = False
        self.build: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._listen, args=(reader,), daemon=True)
        self._thread.start()
        with self._news:
            heard = self._news.wait_for(lambda: self.build or self.gone, _IMPORT_WITHIN)
        if not heard or self.gone:
            self.close()
            last = " / ".join(_tail(self._log)[-1:]) or "it said nothing"
            raise ToolError(
                f"PaddlePaddle does not start ({last})", hint="`tipcheck doctor` says what is wrong"
            )

    def run(self, number: int, request: dict[str, Any]) -> dict[str, Any]:
        line = (json.dumps(request) + "\n").encode()
        with self._news:
            try:
                self._send(line)
            except OSError:
                self.gone = True
            self._news.wait_for(lambda: number in self._ends or self.gone)
            return self._ends.pop(number, {"lost": True})

    def _send(self, line: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it was opened as a pipe
        while line:
            line = line[self._process.stdin.write(line) :]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._thread.join(5.0)

    def _listen(self, reader: int) -> None:
        with open(reader, encoding="utf-8") as answers:
            for line in answers:
                message = json.loads(line)
                with self._news:
                    if "build" in message:
                        self.build = message["build"]
                    else:
                        self._ends[message["id"]] = message
                    self._news.notify_all()
        with self._news:
            self.gone = True
            self._news.notify_all()


_QUIET = {"GLOG_minloglevel": "2", "FLAGS_call_stack_level": "0", "NVIDIA_TF32_OVERRIDE": "0"}
"""On a GPU a float32 stage has to be float32: cuBLAS would use TF32 otherwise."""


def _read_answers(path: Path) -> tuple[dict[str, Any], ...]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    messages = []
    for line in lines:
        with contextlib.suppress(ValueError):  # it died while it wrote
            messages.append(json.loads(line))
    return tuple(messages)


def _how(end: Mapping[str, Any], time_limit: float, lines: tuple[str, ...]) -> str:
    if end.get("lost"):
        return "was lost: the process that started it died"
    if end["timed_out"]:
        return f"ran out of time (after {time_limit:g} s)"
    number = end["signal"]
    if number is not None:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        killed = ", as the system does when memory runs out" if name == "SIGKILL" else ""
        return f"died on {name}{killed}"
    if end["code"]:
        last = f" ({lines[-1]})" if lines else ""
        return f"exited with code {end['code']}{last}"
    return ""


def _tail(path: Path) -> tuple[str, ...]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            text = file.read().decode(errors="replace")
    except OSError:
        return ()
    lines = [line.rstrip()[:400] for line in text.splitlines() if not _FRAME.match(line)]
    return tuple(lines)[-_LAST_LINES:]
