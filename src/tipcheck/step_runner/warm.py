"""The engine ``warm``: Python steps begin in a process that has imported paddle already.

Importing paddle takes about as long as a small export itself. Every job that ``warm_fit`` lets
through is forked from a warm server with the same interpreter and the same start-up environment,
made when the first such job comes; all other jobs take the way of ``local``. Nobody has to choose:
where there can be no server (no paddle, a GPU build, an interpreter too old), that is the way too.
"""

from __future__ import annotations

import select
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import ToolError
from tipcheck.step_runner.contract import End, Job
from tipcheck.step_runner.link import Holdings, KeeperLink
from tipcheck.step_runner.local import SOURCE, LocalEngine
from tipcheck.step_runner.warm_fit import Chooser, Fit, Kind, shadows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_BOOT = (
    "import sys; sys.path[0] = sys.argv.pop(1); "
    "from tipcheck.step_runner.warm_server import main; main(sys.argv[1:])"
)
_MOST_SERVERS = 4
"""Each holds some 300 MB, most of it shared with the steps that it has started."""
_IMPORT_WITHIN = 180.0


@dataclass
class _Server:
    """A process that is warming up, warm, or gone."""

    link: KeeperLink
    since: float
    waiting: list[tuple[Job, Fit]] = field(default_factory=list)
    modules: frozenset[str] = frozenset()
    ready: bool = False
    gone: bool = False

    @property
    def idle(self) -> bool:
        """Whether it can be sent away."""
        return self.gone or (self.ready and not self.link.jobs)

    def close(self) -> None:
        """End it; an import in progress is not waited for."""
        if not self.ready:
            self.link.kill()
        self.link.close()


class WarmEngine(LocalEngine):
    """Forks Python steps from warm processes; gives all others a fresh one."""

    name = "warm"

    def __init__(self, holdings: Holdings | None = None, preload: str = "paddle") -> None:
        """Say what to hold, and which module the servers import beforehand."""
        super().__init__(holdings)
        self._preload = preload
        self._chooser = Chooser()
        self._servers: dict[Kind, _Server] = {}
        self._unfit: list[End] = []
        self._stopping = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every job that still runs, at once, and wait until all its processes are gone."""
        for server in self._servers.values():
            server.close()
        super().__exit__(kind, error, trace)

    def start(self, job: Job) -> None:
        """Send a job to the server that it fits, or to the keeper."""
        fit = self._chooser.choose(job)
        server = None if isinstance(fit, str) else self._server(fit, job)
        if server is None or isinstance(fit, str) or server.gone:
            super().start(job)
        elif not server.ready:
            server.waiting.append((job, fit))
        else:
            self._start_warm(server, job, fit)

    def stop(self) -> None:
        """Let every supervisor end its step, SIGTERM first; what is not started never will be."""
        self._stopping = True
        super().stop()
        for server in self._servers.values():
            if server.ready:
                server.link.stop()
            self._unfit += [
                End(key=job.key, attempt=job.attempt, cut="stopped") for job, _ in server.waiting
            ]
            server.waiting.clear()

    def wait(self, timeout: float) -> Sequence[End]:
        """Return the ends that arrive within ``timeout`` seconds; at once when one does.

        Raises:
            ToolError: the keeper died while jobs were running.
        """
        ends, self._unfit = self._unfit, []
        alive = {s.link.reports: s for s in self._servers.values() if not s.gone}
        timeout = 0.0 if ends else max(0.0, timeout)
        for report in select.select([self._keeper.reports, *alive], [], [], timeout)[0]:
            ends += self._hear(alive[report]) if report in alive else self._read()
        for server in alive.values():
            if not server.ready and time.monotonic() > server.since + _IMPORT_WITHIN:
                server.link.kill()  # its end is heard next time
        return ends

    # Servers -----------------------------------------------------------------------------------

    def _server(self, fit: Fit, job: Job) -> _Server | None:
        """Return the server for a job; makes one if need be, and None when there can be none."""
        if fit.kind not in self._servers:
            if len(self._servers) >= _MOST_SERVERS and not self._retire_one():
                return None
            command = [*fit.kind.interpreter, "-c", _BOOT, str(SOURCE), self._preload]
            try:
                link = KeeperLink(
                    command, self._holdings, env=job.env, cwd=Path(job.cwd), quiet=True
                )
            except ToolError:
                return None  # a fresh process will say what is wrong with the interpreter
            self._servers[fit.kind] = _Server(link, time.monotonic())
        return self._servers[fit.kind]

    def _retire_one(self) -> bool:
        """Send the oldest server away that has nothing to do; False when all are at work."""
        for kind, server in self._servers.items():
            if server.idle:
                del self._servers[kind]
                server.close()
                return True
        return False

    def _hear(self, server: _Server) -> list[End]:
        """Take what a server says: that it is warm, how jobs ended, or nothing any more."""
        records = server.link.read()
        if records is None:
            return self._lose(server)
        ends = []
        for record in records:
            if "modules" in record:
                server.modules = frozenset(record["modules"])
                server.ready = True
                waiting, server.waiting = server.waiting, []
                for job, fit in waiting:
                    self._start_warm(server, job, fit)
            elif record.pop("refused", False):
                ends += self._start_afresh(server.link.jobs.pop(record["id"]))
            else:
                ends.append(server.link.end_of(record))
        return ends

    def _start_afresh(self, job: Job) -> list[End]:
        """Give a process of its own to a job that set a variable which is read before a fork."""
        if self._stopping:
            return [End(key=job.key, attempt=job.attempt, cut="stopped")]
        super().start(job)
        return []

    def _lose(self, server: _Server) -> list[End]:
        server.gone = True
        waiting, server.waiting = server.waiting, []
        for job, _ in waiting:
            super().start(job)
        lost = list(server.link.jobs.values())
        server.link.jobs.clear()
        trouble = "the warm process that this step was to be forked from was killed"
        return [End(key=job.key, attempt=job.attempt, trouble=trouble) for job in lost]

    def _start_warm(self, server: _Server, job: Job, fit: Fit) -> None:
        if shadows(fit.script, server.modules) or not server.link.start(job, watched=fit.may_set):
            super().start(job)
