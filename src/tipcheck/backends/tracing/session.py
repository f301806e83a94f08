"""A conversation with one worker: it loads a model once and then answers several requests.

Everything that can go wrong on the other side (an error, a signal, silence) ends as an exception
here that says so.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.isolation import WorkerEnd, run_worker
from tipcheck.backends.told import telling
from tipcheck.backends.tracing.crash import CrashError
from tipcheck.backends.tracing.pool import Line, listen
from tipcheck.backends.tracing.run_modes import ModeSettings, check_settings, environment
from tipcheck.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

_MODULE = "tipcheck.backends.tracing.worker"
_ERRORS = {"UsageError": UsageError, "ToolError": ToolError, "CrashError": CrashError}


class DiedError(CrashError):
    """A worker ended before it had answered. ``end`` says how."""

    def __init__(self, end: WorkerEnd | None, where: str) -> None:
        self.end = end
        how = end.died if end is not None else "did not answer"
        last = f" ({telling(end.last_lines)})" if end and end.last_lines and end.signal else ""
        super().__init__(
            f"the process that ran the model {how or 'ended early'}{last}",
            where=where,
            hint="tipcheck doctor says what runs on this machine",
        )


class Session:
    """One worker with one execution of a model: ``open`` it, ``ask``, ``close`` it.

    Args:
        model: the exported model.
        run_mode: how to run it.
        settings: what the mode is told.
        inputs: an ``.npz`` file, for modes that look at inputs before they can be made.
        time_limit: seconds after which the worker is ended, whatever it is doing.
    """

    def __init__(
        self,
        model: Path,
        run_mode: str,
        settings: ModeSettings | None = None,
        *,
        inputs: Path | None = None,
        time_limit: float = 3600.0,
    ) -> None:
        self.run_mode = run_mode
        self.model = model
        self._settings = settings or ModeSettings()
        self._inputs = inputs
        self._time_limit = time_limit
        self._line: Line | None = None
        self._end: WorkerEnd | None = None
        self.folder = Path()
        self.ready = False
        self._pid = 0

    def open(self) -> None:
        """Start the worker; ``wait`` returns when it has loaded the model."""
        if self.run_mode != "trt_int8":
            check_settings(self.run_mode, self._settings)
        self.folder = Path(tempfile.mkdtemp(prefix="tipcheck-"))
        control = str(self.folder / "control")
        server = listen(control)
        request = {
            "control": control,
            "folder": str(self.folder),
            "model": str(self.model.resolve()),
            "run_mode": self.run_mode,
            "settings": asdict(self._settings),
            "inputs": str(self._inputs.resolve()) if self._inputs else "",
        }
        self._thread = threading.Thread(target=self._serve, args=(request,), daemon=True)
        self._thread.start()
        with server:
            while not select.select([server], [], [], 0.1)[0]:
                if not self._thread.is_alive():
                    self.close()
                    raise DiedError(self._end, self.run_mode)
            self._line = Line(server.accept()[0])

    def kill(self) -> None:
        """End the worker, which may be in the middle of a long run."""
        if self._pid and self._thread.is_alive():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> None:
        """Return when the model is loaded; raise what kept it from being."""
        if not self.ready:
            self._answer(None)
            self.ready = True

    def ask(
        self, order: dict[str, Any], on_event: Callable[[dict[str, Any]], None] | None = None
    ) -> dict[str, Any]:
        """Send a request and return its answer; events on the way go to ``on_event``."""
        self.wait()
        assert self._line is not None  # noqa: S101 - it is entered
        self._line.send(order)
        return self._answer(on_event)

    def _answer(self, on_event: Callable[[dict[str, Any]], None] | None) -> dict[str, Any]:
        assert self._line is not None  # noqa: S101 - it is entered
        while True:
            message = self._line.receive()
            if message is None:
                self._thread.join(10.0)
                raise DiedError(self._end, self.run_mode)
            if "error" in message:
                kind = _ERRORS.get(message["error"], ToolError)
                raise kind(message["what"], where=message["where"], hint=message["hint"])
            if "done" in message:
                return message
            if "pid" in message:
                self._pid = message["pid"]
            elif on_event is not None:
                on_event(message)

    def _serve(self, request: dict[str, Any]) -> None:
        self._end = run_worker(
            _MODULE, request, time_limit=self._time_limit, env=environment(self.run_mode)
        )

    def close(self) -> None:
        """End the worker and remove what it wrote."""
        if self._line is not None:
            self._line.send({"do": "end"})
            self._line.close()
        self._thread.join(20.0)
        shutil.rmtree(self.folder, ignore_errors=True)
