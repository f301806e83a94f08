"""The process that starts all others: small, single-threaded, in a session of its own.

Forking is only safe and cheap in such a process; the tool itself has threads, a database and ten
thousand steps in memory. The keeper forks one supervisor per job and nothing else happens here. It
lives exactly as long as the tool: when the tool's end of the command socket closes, it waits for
the supervisors (which see the lifeline close and kill their steps) and leaves.

It also holds the lock of the output folder, as do the supervisors: a run that was killed is over,
for the next one, when the last of its processes is gone.

Command lines, as JSON: ``{"start": {job}}`` and ``{"stop": true}``. Records go to the report pipe,
one line each, short enough to be written in one piece; before that, to the journal file, where they
survive the tool.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

from tipcheck.step_runner import proctree
from tipcheck.step_runner.supervisor import Launch, StopFlag, Supervisor, execute

if TYPE_CHECKING:
    from collections.abc import Mapping

_NO_JOURNAL = -1


class Keeper:
    """Takes commands from a socket and forks a supervisor for every job."""

    def __init__(
        self, commands: socket.socket, lifeline: int, reports: int, journal: int, launch: Launch
    ) -> None:
        """Take over the descriptors that the tool passed on.

        Args:
            commands: where command lines come from.
            lifeline: read end of the pipe that closes when the tool dies.
            reports: write end of the pipe to the tool.
            journal: descriptor of the journal file, opened for appending, or -1.
            launch: how a forked process becomes a step.
        """
        self._commands = commands
        self._lifeline = lifeline
        self._reports = reports
        self._journal = journal
        self._launch = launch
        self._supervisors: dict[int, tuple[int, int]] = {}
        self._buffer = b""

    def serve(self) -> None:
        """Work until the tool closes its end of the socket and every supervisor has left."""
        wake, wake_write = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self._commands, select.POLLIN)
        poll.register(wake, select.POLLIN)
        tool_is_there = True
        while tool_is_there or self._supervisors:
            for fd, _ in poll.poll():
                if fd == wake:
                    os.read(wake, 4096)
                elif not self._receive():
                    tool_is_there = False
                    poll.unregister(self._commands)
            self._reap()
        self._end_strays()

    def _receive(self) -> bool:
        """Read commands and carry them out; False when the tool is gone."""
        chunk = self._commands.recv(1 << 20)
        if not chunk:
            return False
        lines = (self._buffer + chunk).split(b"\n")
        self._buffer = lines.pop()
        for line in lines:
            command = json.loads(line)
            if "start" in command:
                self._start(command["start"])
            else:
                proctree.signal_all(list(self._supervisors), signal.SIGTERM)
        return True

    def _start(self, job: Mapping[str, Any]) -> None:
        # Python forgets signals that arrive while it forks: they have to wait until it is done.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            pid = os.fork()
            if pid == 0:
                self._supervise(job)
        except OSError as error:
            trouble = f"cannot start a process: {error.strerror}"
            self._report({"id": job["id"], "attempt": job["attempt"], "trouble": trouble})
        else:
            self._supervisors[pid] = (job["id"], job["attempt"])
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def _supervise(
        self, job: Mapping[str, Any]
    ) -> None:  # pragma: no cover - in the forked process
        """Be the supervisor of a job, in the process just forked for it. Never returns."""
        status = 1
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            self._commands.close()
            self._report(Supervisor(job, self._lifeline, self._launch).run())
            status = 0
        finally:
            os._exit(status)

    def _report(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record).encode() + b"\n"
        counts = record.get("cut") != "stopped" and not record.get("refused")
        if self._journal != _NO_JOURNAL and counts:
            with contextlib.suppress(OSError):  # disk full: the tool hears of it through the pipe
                os.write(self._journal, line)
        with contextlib.suppress(BrokenPipeError):  # the tool is gone: the journal has it
            os.write(self._reports, line)

    def _reap(self) -> None:
        """Collect supervisors that have left; speak for one that was killed."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            identity = self._supervisors.pop(pid, None)
            if identity is not None and status != 0:
                self._end_strays()
                trouble = "the process that watched over this step was killed"
                self._report({"id": identity[0], "attempt": identity[1], "trouble": trouble})

    def _end_strays(self) -> None:
        """Kill what a killed supervisor has left to this process, and all below it."""
        me = os.getpid()
        watched = {*self._supervisors}
        for pid in self._supervisors:
            watched.update(proctree.descendants(pid))
        strays = [pid for pid in proctree.descendants(me) if pid not in watched]
        proctree.signal_all(strays, signal.SIGKILL)


def keep(descriptors: Mapping[str, int], launch: Launch = execute) -> None:
    """Be the keeper: set this process up and serve until the tool is gone."""
    for descriptor in descriptors.values():
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)  # noqa: FBT003 - a function of os
    proctree.become_subreaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    keeper = os.getpid()

    def on_term(_number: int, _frame: object) -> None:
        StopFlag.raised = os.getpid() != keeper  # it means a supervisor; the keeper stays

    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    gc.disable()
    gc.freeze()  # less memory to copy after every fork
    with socket.socket(fileno=descriptors["commands"]) as commands:
        Keeper(
            commands,
            descriptors["lifeline"],
            descriptors["reports"],
            descriptors["journal"],
            launch,
        ).serve()


def main(arguments: list[str]) -> None:
    """Entry of the keeper's process: its one argument names the descriptors, as JSON."""
    keep(json.loads(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
