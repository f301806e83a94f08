"""Watches over one step: starts it, carries its output to the log, and leaves nothing of it alive.

A supervisor is a small process between the keeper and the step. Being a subreaper, it inherits
whatever the step leaves behind, in whichever session or process group, so that the step has ended
only when the supervisor has no child left. It ends the step

- when the time limit is over or the run is stopped: SIGTERM to all its processes, SIGKILL after the
  grace period;
- when the tool dies, which closes the lifeline: SIGKILL at once. If the step had already finished
  by itself, that result is still written to the journal, so that nothing that passed runs again.

Runs inside the keeper, so it imports the standard library and its neighbours only.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from tipcheck.step_runner import proctree, quantised
from tipcheck.step_runner.logfile import BoundedLog, SignReader

Launch = Callable[[Mapping[str, Any]], None]
"""Becomes the step, in the forked process; only returns by raising OSError or ValueError."""

_NATURAL_END = 0.3
"""Seconds that helpers of a finished step get to end by themselves."""
_LEFTOVER_GRACE = 2.0
_HASTE = 0.05
"""Seconds between SIGTERM and SIGKILL for what a finished step left, once the tool is dead."""
_FIRST_SAMPLE, _SLOWEST_SAMPLE = 0.2, 2.0
_CHUNK = 256 * 1024
_PIPE_SIZE = 1024 * 1024


class StopFlag:
    """Whether this process was asked to stop its step; the keeper sets it on SIGTERM."""

    raised = False


def execute(job: Mapping[str, Any]) -> None:  # pragma: no cover - in the forked process
    """Replace this process by the job's program: the way ``local`` launches a step."""
    argv: list[str] = job["argv"]
    program = find_program(argv[0], job["env"].get("PATH", os.defpath))
    if program is None:
        os.execvpe(argv[0], argv, job["env"])  # noqa: S606 - it raises the error that fits
    else:
        os.execve(program, argv, job["env"])  # noqa: S606 - without a shell is what is wanted


def find_program(name: str, path: str) -> str | None:
    """Return the file that a program's name stands for; None if there is none to start.

    The same search as that of ``os.execvpe``, but without an attempt, and its costs, per folder.
    """
    if "/" in name:
        return name
    for folder in path.split(":"):
        candidate = f"{folder or '.'}/{name}"
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):  # noqa: PTH112 - small
            return candidate
    return None


class Supervisor:
    """One step from start to end. ``run`` returns the record of how it ended."""

    def __init__(self, job: Mapping[str, Any], lifeline: int, launch: Launch = execute) -> None:
        """Prepare for a job.

        Args:
            job: the fields of a ``Job``, as the keeper received them.
            lifeline: read end of a pipe whose only write end is in the tool.
            launch: turns the forked process into the step.
        """
        self._job = job
        self._lifeline = lifeline
        self._launch = launch
        self._signs = SignReader()
        self._log: BoundedLog | None = None
        self._output = -1
        self._main = 0
        self._status: int | None = None
        self._no_children = False
        self._seconds = 0.0
        self._peak = 0
        self._left_behind = 0
        self._cut = ""
        self._begin = 0.0
        self._refusal = mmap.mmap(-1, 1) if job.get("watched") else None
        self._term_at: float | None = None
        self._kill_at: float | None = None
        self._sample_at: float | None = None
        self._sample_gap = _FIRST_SAMPLE

    def run(self) -> dict[str, Any]:
        """Run the job to its end and return its record, the fields of an ``End``."""
        record: dict[str, Any] = {"id": self._job["id"], "attempt": self._job["attempt"]}
        proctree.become_subreaper()
        wake, wake_write = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wake_write, False)
        previous = signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        try:
            trouble = self._start()
            if trouble:
                record["trouble"] = trouble
            else:
                self._watch(wake)
        finally:
            signal.set_wakeup_fd(previous)
            os.close(wake)
            os.close(wake_write)
        return record | self._summary()

    # Starting ----------------------------------------------------------------------------------

    def _start(self) -> str:
        """Start the step; return why it could not be started, or an empty text."""
        job = self._job
        try:
            self._log = BoundedLog(job["log"], job["log_limit"])
        except OSError as error:
            return f"cannot write its log {job['log']}: {error.strerror}"
        self._output, output_write = os.pipe()
        os.set_blocking(self._output, False)
        with contextlib.suppress(OSError, AttributeError):  # Python 3.10+ on Linux has it
            fcntl.fcntl(self._output, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        error_read, error_write = os.pipe()
        self._begin = time.monotonic()
        supervisor = os.getpid()
        try:
            self._main = os.fork()
        except OSError as error:
            for fd in (self._output, output_write, error_read, error_write):
                os.close(fd)
            self._output = -1
            return f"cannot start a process: {error.strerror}"
        if self._main == 0:
            self._become_step(supervisor, output_write, error_write)
        os.close(output_write)
        os.close(error_write)
        with os.fdopen(error_read, "rb") as reader:
            trouble = reader.read().decode("utf-8", "replace")
        if trouble:
            os.waitpid(self._main, 0)
            self._log.note(trouble)
        return trouble

    def _become_step(  # pragma: no cover - in the forked process
        self, supervisor: int, output: int, errors: int
    ) -> None:
        """Turn the forked process into the step. Never returns."""
        place = "cannot enter its working directory " + self._job["cwd"]
        try:
            os.setsid()
            proctree.die_with_parent(supervisor)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.chdir(self._job["cwd"])
            place = "cannot start " + self._job["argv"][0]
            self._launch({**self._job, "errors": errors, "refusal": self._refusal})
        except (OSError, ValueError) as error:
            os.write(
                errors, explain(place, self._job["argv"], error).encode("utf-8", "replace")[:1000]
            )
        finally:
            os._exit(127)

    # Watching ----------------------------------------------------------------------------------

    def _watch(self, wake: int) -> None:
        """Carry output and keep the limits until neither the step nor a child of it lives."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        poll.register(self._lifeline, 0)  # only its closing is of interest
        poll.register(wake, select.POLLIN)
        if self._job["limit"] is not None:
            self._term_at = self._begin + self._job["limit"]
        self._sample_at = self._begin + self._sample_gap
        while True:
            self._reap()
            if self._status is not None and self._no_children:
                break
            self._keep_deadlines()
            for fd, event in poll.poll(self._milliseconds()):
                if fd == self._output:
                    if not self._carry():
                        poll.unregister(fd)
                elif fd == wake:
                    os.read(wake, 4096)
                elif event & (select.POLLHUP | select.POLLERR):
                    poll.unregister(fd)
                    self._tool_is_gone()
        while self._carry():
            pass

    def _keep_deadlines(self) -> None:
        now = time.monotonic()
        if StopFlag.raised and self._status is None and not self._cut:
            self._end_step("stopped")
        if self._term_at is not None and now >= self._term_at:
            if self._status is None:
                self._end_step("timeout")
            else:
                self._term_leftovers()
        if self._kill_at is not None and now >= self._kill_at:
            proctree.signal_all(proctree.descendants(os.getpid()), signal.SIGKILL)
            self._kill_at = now + 0.02  # again, until nothing that was forked meanwhile is left
        if self._sample_at is not None and now >= self._sample_at:
            self._sample(now)

    def _milliseconds(self) -> float | None:
        deadlines = (self._term_at, self._kill_at, self._sample_at)
        known = [deadline for deadline in deadlines if deadline is not None]
        return max(0.0, min(known) - time.monotonic()) * 1000 + 1 if known else None

    def _end_step(self, why: str) -> None:
        self._cut = why
        self._term_at = None
        self._kill_at = time.monotonic() + self._job["grace"]
        proctree.signal_all(proctree.descendants(os.getpid()), signal.SIGTERM)

    def _term_leftovers(self) -> None:
        self._term_at = None
        left = proctree.living_descendants(os.getpid())
        self._left_behind = len(left)
        proctree.signal_all(left, signal.SIGTERM)

    def _tool_is_gone(self) -> None:
        self._reap()
        if self._status is None and not self._cut:
            self._kill_main()
        if not self._cut and self._term_at is not None:
            self._kill_at = self._term_at + _HASTE  # it ended by itself: its result counts
            return
        self._term_at = None
        self._kill_at = 0.0

    def _kill_main(self) -> None:
        """Kill the step's own process, and learn whether it had ended by itself just before.

        It alone, and first: what such a step left running is then counted as it always is.
        """
        os.kill(self._main, signal.SIGKILL)
        _, status, usage = os.wait4(self._main, 0)
        self._peak = max(self._peak, usage.ru_maxrss * 1024)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            self._cut = "stopped"
        self._main_ended(status)

    def _sample(self, now: float) -> None:
        self._peak = max(self._peak, proctree.memory_of(proctree.descendants(os.getpid())))
        self._sample_gap = min(2 * self._sample_gap, _SLOWEST_SAMPLE)
        self._sample_at = now + self._sample_gap

    def _reap(self) -> None:
        """Collect every child that has ended: the step itself, and orphans of it."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self._no_children = True
                return
            if pid == 0:
                return
            self._peak = max(self._peak, usage.ru_maxrss * 1024)
            if pid == self._main:
                self._main_ended(status)

    def _main_ended(self, status: int) -> None:
        self._status = status
        now = time.monotonic()
        self._seconds = now - self._begin
        self._sample_at = None
        if not self._cut:
            self._term_at = now + _NATURAL_END
            self._kill_at = self._term_at + min(self._job["grace"], _LEFTOVER_GRACE)
        elif self._kill_at is not None:
            self._kill_at = min(self._kill_at, now + _LEFTOVER_GRACE)

    def _carry(self) -> bool:
        """Move one chunk from the pipe to the log; False when there is none."""
        try:
            chunk = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return False  # empty, though an outsider may hold it open
        if not chunk:
            return False
        if self._log is not None:
            self._log.write(chunk)
        self._signs.feed(chunk)
        return True

    # Ending ------------------------------------------------------------------------------------

    def _summary(self) -> dict[str, Any]:
        """Close everything and return what is known about the step."""
        summary: dict[str, Any] = {"seconds": round(self._seconds, 6)}
        if self._output >= 0:
            os.close(self._output)
        self._signs.finish()
        if self._status is not None:
            code = os.waitstatus_to_exitcode(self._status)
            summary["exit_code" if code >= 0 else "signal"] = abs(code)
            summary["peak_memory_bytes"] = self._peak
        summary["cut"] = self._cut
        if self._refusal is not None and self._refusal[0]:
            summary["refused"] = True
        summary["hollow"] = self._signs.found or self._not_quantised(summary)
        summary["left_behind"] = self._left_behind
        if self._log is not None:
            self._write_notes(self._log)
            summary["log_note"] = self._log.close()
            summary["last_words"] = self._log.last_words.decode("utf-8", "replace")
        return summary

    def _not_quantised(self, summary: Mapping[str, Any]) -> str:
        if not self._job.get("quantised") or summary.get("exit_code") != 0:
            return ""
        began = time.time() - (time.monotonic() - self._begin)
        return quantised.why_not(self._job["argv"], self._job["cwd"], began)

    def _write_notes(self, log: BoundedLog) -> None:
        if self._cut == "timeout":
            log.note(
                f"ended after {self._seconds:.1f} s, its time limit is {self._job['limit']:g} s"
            )
        elif self._cut:
            log.note(f"ended after {self._seconds:.1f} s, because the run was stopped")
        if self._left_behind:
            log.note(f"ended {self._left_behind} process(es) that the step had left running")


def explain(place: str, argv: list[str], error: Exception) -> str:
    """Return why a program could not be started, in words that lead to the cause."""
    if not isinstance(error, OSError):
        return f"{place}: {error}"
    if error.errno == errno.E2BIG:
        longest = max(range(len(argv)), key=lambda index: len(argv[index]))
        size = len(os.fsencode(argv[longest]))
        return (
            f"{place}: the system does not accept a command line this long "
            f"(its longest argument, number {longest}, has {size:,} bytes)"
        )
    if error.errno == errno.ENOENT and place.endswith(argv[0]) and "/" not in argv[0]:
        return f"{place}: command not found"
    return f"{place}: {error.strerror}"
