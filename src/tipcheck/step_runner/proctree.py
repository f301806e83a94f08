"""The processes below a process: finding them, measuring them, ending them.

A step may fork, start sessions of its own and outlive its parent. Because its supervisor is a
*subreaper*, whatever it starts stays below the supervisor in the process tree, and this module
finds it there. Linux only; imports the standard library only, because it runs in the keeper.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections import defaultdict

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Let orphans among this process's descendants become its children, not those of init."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:  # pragma: no cover - in the forked process
    """Have the kernel kill this process when its parent, of the given id, dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # it died before the line above


def live_without_parent() -> None:
    """Take ``die_with_parent`` back."""
    _libc.prctl(_PR_SET_PDEATHSIG, 0, 0, 0, 0)


def descendants(root: int) -> list[int]:
    """Return the ids of all processes below ``root``, nearest first, without ``root`` itself."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in os.listdir("/proc"):  # noqa: PTH208 - runs often; Path objects cost ten times more
        if not entry.isdigit():
            continue
        children[_state_and_parent(int(entry))[1]].append(int(entry))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def living_descendants(root: int) -> list[int]:
    """Return ``descendants`` without those that only wait to be reaped."""
    return [pid for pid in descendants(root) if _state_and_parent(pid)[0] not in "ZX"]


def _state_and_parent(pid: int) -> tuple[str, int]:
    """Return the state letter and the parent of a process; ``X`` when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - see above
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return "X", 0
    return fields[0].decode(), int(fields[1])


def signal_all(pids: list[int], number: int) -> None:
    """Send a signal to every process of the list that still exists."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def memory_of(pids: list[int]) -> int:
    """Return the bytes these processes hold together, shared pages counted once."""
    return sum(_proportional_memory(pid) for pid in pids)


def _proportional_memory(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123 - see above
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # it has just ended, or belongs to someone else
    return 0
