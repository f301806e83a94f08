"""One run at a time in an output folder, without a lock that a killed run leaves behind.

The lock belongs to an open file, not to a process id: the kernel drops it when the last process
that has the file open is gone. The keeper and its supervisors have it open too, so that after a
kill of the tool the next run begins only when the last step of the killed one is really over.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LAST_BREATH = 20.0
"""Seconds that the processes of a killed run get to end."""
_DYING = 0.3
"""Seconds that a run which was killed this very moment may still look alive."""


@contextlib.contextmanager
def hold(path: Path) -> Iterator[int]:
    """Hold a folder by its lock file; gives the locked descriptor.

    Raises:
        ToolError: another run holds it; the message says which, and since when.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ToolError(
            f"cannot write here: {error.strerror}",
            where=str(path.parent),
            hint="choose another folder with --output",
        ) from None
    try:
        _acquire(descriptor, path)
        os.truncate(descriptor, 0)
        text = json.dumps({"pid": os.getpid(), "since": time.time()})
        os.pwrite(descriptor, text.encode(), 0)
        yield descriptor
        os.truncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path) -> None:
    begin = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # noqa: PERF203 - it waits anyway
            pid, since = _holder(path)
            patience = _DYING if pid is None or _lives(pid) else _LAST_BREATH
            if time.monotonic() > begin + patience:
                raise ToolError(
                    _who(pid, since),
                    where=str(path.parent),
                    hint="wait until it ends, or choose another folder with --output",
                ) from None
            time.sleep(0.02)
        else:
            return


def _holder(path: Path) -> tuple[int | None, float]:
    try:
        content = json.loads(path.read_text())
        return int(content["pid"]), float(content["since"])
    except (OSError, ValueError, KeyError):
        return None, 0.0


def _who(pid: int | None, since: float) -> str:
    if pid is None:
        return "another run holds this folder"
    clock = datetime.fromtimestamp(since).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if _lives(pid):
        return f"another run holds this folder: pid {pid}, since {clock}"
    return f"the run of pid {pid}, since {clock}, was killed, but a process of it does not end"


def _lives(pid: int) -> bool:
    """Whether a process exists and is more than a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
