"""The engine ``local``: every job a process of this machine, started by the keeper."""

from __future__ import annotations

import contextlib
import json
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tipcheck.errors import ToolError
from tipcheck.step_runner.contract import End
from tipcheck.step_runner.link import Holdings, KeeperLink

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from tipcheck.step_runner.contract import Job

SOURCE = Path(__file__).parents[2]
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from tipcheck.step_runner.keeper import main; main(sys.argv[1:])"
)


class LocalEngine:
    """Starts jobs as processes of this machine."""

    name = "local"

    def __init__(self, holdings: Holdings | None = None) -> None:
        """Say what the keeper shall hold for the run."""
        self._holdings = holdings or Holdings()

    def __enter__(self) -> LocalEngine:  # noqa: PYI034 - typing.Self needs Python 3.11
        command = [*self._interpreter(), "-c", _BOOT, str(SOURCE)]
        self._keeper = KeeperLink(command, self._holdings)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every job that still runs, at once, and wait until all its processes are gone."""
        self._keeper.close()

    def _interpreter(self) -> list[str]:
        """Return the command of the keeper's interpreter: this one, without its site packages."""
        return [sys.executable, "-I", "-S", "-X", "utf8"]

    def start(self, job: Job) -> None:
        """Send a job to the keeper."""
        if not self._keeper.start(job):
            self._keeper_died()

    def stop(self) -> None:
        """Let every supervisor end its step, SIGTERM first."""
        self._keeper.stop()

    def wait(self, timeout: float) -> Sequence[End]:
        """Return the ends that arrive within ``timeout`` seconds; at once when one does.

        Raises:
            ToolError: the keeper died while jobs were running.
        """
        if not select.select([self._keeper.reports], [], [], max(0.0, timeout))[0]:
            return []
        return self._read()

    def _read(self) -> list[End]:
        records = self._keeper.read()
        if records is None:
            self._keeper_died()
        return [self._keeper.end_of(record) for record in records]

    def _keeper_died(self) -> NoReturn:
        raise ToolError(
            "the process that starts the steps was killed",
            where="engine",
            hint="give the same command again to go on from here",
        )


def read_journal(path: Path) -> Iterator[End]:
    """Yield the ends that a journal holds; a last line that was cut off is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for line in lines[:-1]:
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            yield End(key=str(record.pop("id")), **record)
