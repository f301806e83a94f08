"""Runs a repo's own prepare.sh and believes its failure.

These scripts were written without ``set -e``: one that loses its download in the first line goes on
and ends well, and the chain then fails somewhere else. Here bash is told, by a trap that is set
before the script begins, to stop at the first command that fails unnoticed and to write down where
it stands; see ``prepare_trap.sh``. Output goes out live and into a log. Whatever the script has
started ends with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tipcheck.errors import ToolError
from tipcheck.step_runner.interruption import Interruption

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FIELDS = 5
_PIECE = 64 * 1024
_PAUSE = 0.02
_LEFT_OPEN = 2.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A command of the script that failed.

    Attributes:
        file: the script it stands in.
        line: its line there.
        command: its text.
        exit_code: what it returned.
    """

    file: str
    line: int
    command: str
    exit_code: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.command} (exit code {self.exit_code})"


@dataclass(frozen=True, slots=True)
class Prepared:
    """How a prepare.sh ended.

    Attributes:
        exit_code: of bash; negative for a signal.
        timed_out: whether it was ended by its time limit.
        failure: the command that stopped it, where one did.
        passed_over: commands that failed only because their work was done before.
    """

    exit_code: int
    timed_out: bool = False
    failure: Failure | None = None
    passed_over: tuple[Failure, ...] = ()

    @property
    def good(self) -> bool:
        """Whether everything that had to work did."""
        return self.exit_code == 0 and not self.timed_out and self.failure is None


@dataclass(frozen=True, slots=True)
class Preparation:
    """What to run.

    Attributes:
        script: the prepare.sh.
        arguments: what it is given: the config, the mode and whatever else it takes.
        root: folder it is started in.
        log: file for its output.
        lenient: whether only the exit code of the script as a whole counts.
        timeout: seconds it may take, or None.
        grace: seconds from SIGTERM to SIGKILL.
    """

    script: Path
    arguments: Sequence[str]
    root: Path
    log: Path
    lenient: bool = False
    timeout: float | None = None
    grace: float = 5.0


def prepare(what: Preparation, show: Callable[[bytes], object]) -> Prepared:
    """Run a prepare.sh.

    Args:
        what: the script and how to run it.
        show: called with each piece of its output.

    Raises:
        ToolError: bash is not there, or the log cannot be written.
        KeyboardInterrupt: the user or the system wants it to end; it has ended by then.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tipcheck-prepare-"))
        report = Path(folder, "report")
        env = dict(os.environ)
        if not what.lenient:
            trap = files("tipcheck.step_runner").joinpath("prepare_trap.sh")
            env["BASH_ENV"] = str(stack.enter_context(as_file(trap)))
            env["TIPCHECK_PREPARE_REPORT"] = str(report)
        log = stack.enter_context(_open(what.log))
        interruption = stack.enter_context(Interruption())
        exit_code, timed_out = _run(what, env, log, show, interruption)
        stopped, passed_over = _read_report(report)
    return Prepared(exit_code, timed_out, stopped, passed_over)


def _open(log: Path) -> BinaryIO:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("wb", buffering=0)
    except OSError as error:
        raise ToolError(
            f"cannot be written ({error.strerror})", where=str(log), hint="choose another --log"
        ) from None


def _run(
    what: Preparation,
    env: Mapping[str, str],
    log: BinaryIO,
    show: Callable[[bytes], object],
    interruption: Interruption,
) -> tuple[int, bool]:
    """Return the exit code of bash, and whether the time limit ended it.

    A signal is looked for, not raised wherever it arrives: bash may run before ``Popen`` returns,
    and an exception there would leave nobody who knows of it.
    """
    try:
        process = subprocess.Popen(
            ["bash", str(what.script), *what.arguments],
            cwd=what.root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"bash cannot be started ({error})", hint="install bash") from None
    reader = _Reader(process, log, show)
    reader.start()
    end = None if what.timeout is None else time.monotonic() + what.timeout
    in_time = False
    try:
        in_time = _wait(process, end, lambda: bool(reader.lost or interruption.count))
    finally:
        _end_group(process, what.grace, interruption)
        reader.join(_LEFT_OPEN)  # a daemon of the script may hold the pipe for ever
    if interruption.count:
        raise KeyboardInterrupt
    if reader.lost is not None:
        raise ToolError(
            f"output is lost ({reader.lost.strerror})", where=str(what.log), hint="make room"
        )
    return process.returncode, not in_time


class _Reader(threading.Thread):
    """Passes on the output of a script while it runs."""

    def __init__(
        self, process: subprocess.Popen[bytes], log: BinaryIO, show: Callable[[bytes], object]
    ) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._log = log
        self._show = show
        self.lost: OSError | None = None

    def run(self) -> None:
        """Copy what comes to the log and to the user."""
        pipe = self._process.stdout
        assert pipe is not None  # noqa: S101 - it was asked for
        with pipe:
            while piece := os.read(pipe.fileno(), _PIECE):
                try:
                    self._log.write(piece)
                except OSError as error:
                    self.lost = error
                    return
                except ValueError:  # closed: a daemon went on writing, and nobody waits for it
                    return
                with contextlib.suppress(BrokenPipeError):  # the log is still there to read
                    self._show(piece)


def _wait(process: subprocess.Popen[bytes], end: float | None, enough: Callable[[], bool]) -> bool:
    """Wait for a script; return False when its time is up or ``enough`` says so."""
    while not _is_over(process):
        if enough() or (end is not None and time.monotonic() >= end):
            return False
        time.sleep(_PAUSE)
    return True


def _is_over(process: subprocess.Popen[bytes]) -> bool:
    """Whether bash has ended. It stays a zombie, so that its group's number is not given away."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, options) is not None


def _end_group(process: subprocess.Popen[bytes], grace: float, interruption: Interruption) -> None:
    """End bash and everything in its process group; a second signal does not wait."""
    if not _is_over(process):
        os.killpg(process.pid, signal.SIGTERM)
        _wait(process, time.monotonic() + grace, lambda: interruption.count > 1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read_report(path: Path) -> tuple[Failure | None, tuple[Failure, ...]]:
    """Return the command that stopped the script, and those that it went on after."""
    try:
        parts = path.read_bytes().decode("utf-8", "replace").split("\0")[:-1]
    except OSError:
        return None, ()
    stopped = None
    passed_over = []
    for at in range(0, len(parts) - _FIELDS + 1, _FIELDS):
        verdict, status, line, file, command = parts[at : at + _FIELDS]
        failure = Failure(file, int(line), " ".join(command.split()), int(status))
        if verdict != "stop":
            passed_over.append(failure)
        elif stopped is None:  # the innermost command reports first
            stopped = failure
    return stopped, tuple(passed_over)
