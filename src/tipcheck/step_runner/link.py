"""The tool's end of the connection to one keeper.

A socket carries jobs to the keeper, a pipe brings back how they ended, and the lifeline is a pipe
that nobody writes to: when the tool dies, however it dies, the kernel closes it, and every
supervisor ends its step.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.errors import ToolError
from tipcheck.step_runner.contract import End, Job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LEAVE_WITHIN = 15.0


@dataclasses.dataclass(frozen=True, slots=True)
class Holdings:
    """What a keeper holds for the run.

    Attributes:
        journal: file that the ends of jobs are appended to, readable after a kill of the tool.
        lock: a locked descriptor that stays open as long as any process of a job lives.
    """

    journal: Path | None = None
    lock: int | None = None


class KeeperLink:
    """A keeper that was started, and the jobs that it was given."""

    def __init__(
        self,
        command: Sequence[str],
        holdings: Holdings,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        quiet: bool = False,
    ) -> None:
        """Start a keeper.

        Args:
            command: interpreter and arguments; one more is added, which names the descriptors.
            holdings: what it holds.
            env: its environment, if it is not this process's.
            cwd: its working directory, if it is not this process's.
            quiet: whether what it prints itself is of no interest.

        Raises:
            ToolError: it cannot be started.
        """
        self.jobs: dict[int, Job] = {}
        self._serial = 0
        self._buffer = b""
        self._commands, theirs = socket.socketpair()
        lifeline, self._lifeline = os.pipe()
        self.reports, reports = os.pipe()
        os.set_blocking(self.reports, False)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        journal = -1 if holdings.journal is None else os.open(holdings.journal, flags, 0o666)
        descriptors = {
            "commands": theirs.fileno(),
            "lifeline": lifeline,
            "reports": reports,
            "journal": journal,
            "hold": -1 if holdings.lock is None else holdings.lock,
        }
        output = subprocess.DEVNULL if quiet else None
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                [*command, json.dumps(descriptors)],
                pass_fds=[descriptor for descriptor in descriptors.values() if descriptor >= 0],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env=env,
                cwd=cwd,
            )
        except OSError as error:
            self.close()
            raise ToolError(f"cannot start a process: {error.strerror}", where="engine") from None
        finally:
            theirs.close()
            for descriptor in (lifeline, reports, journal):
                if descriptor >= 0:
                    os.close(descriptor)

    def start(self, job: Job, *, watched: bool = False) -> bool:
        """Send a job; False when the keeper is gone.

        Args:
            job: the job.
            watched: whether it is refused when it sets variables that came too late.
        """
        self._serial += 1
        fields = {field.name: getattr(job, field.name) for field in dataclasses.fields(job)}
        fields["env"] = dict(job.env)
        if not self._send({"start": {"id": self._serial, **fields, "watched": watched}}):
            return False
        self.jobs[self._serial] = job
        return True

    def stop(self) -> None:
        """Let every supervisor of this keeper end its step, SIGTERM first."""
        self._send({"stop": True})

    def read(self) -> list[dict[str, Any]] | None:
        """Return the records that have arrived, or None when the keeper and all below it ended."""
        chunk = os.read(self.reports, 1 << 20)
        if not chunk:
            return None
        lines = (self._buffer + chunk).split(b"\n")
        self._buffer = lines.pop()
        return [json.loads(line) for line in lines]

    def end_of(self, record: dict[str, Any]) -> End:
        """Return the end of a job that a record tells of."""
        job = self.jobs.pop(record["id"])
        return End(key=job.key, **{name: record[name] for name in record if name != "id"})

    def kill(self) -> None:
        """End a keeper that has not begun to start jobs, and what it has started itself."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End every job that still runs, at once, and wait until all its processes are gone."""
        self._commands.close()
        os.close(self._lifeline)
        os.close(self.reports)
        if self._process is None:
            return
        try:
            self._process.wait(_LEAVE_WITHIN)
        except subprocess.TimeoutExpired:  # a process hangs in the kernel
            self._process.kill()
            self._process.wait()

    def _send(self, command: dict[str, object]) -> bool:
        try:
            self._commands.sendall(json.dumps(command).encode() + b"\n")
        except OSError:
            return False
        return True
