"""Which step may start next: needs, a limit on steps at a time, and GPU slots.

Pure bookkeeping, without processes or clocks, so that the rules can be tested alone. Steps are
numbers, in the plans' order; an earlier step goes first. A step that waits for a GPU reserves it
against later steps, so that wide steps are not starved by narrow ones.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Node:
    """A step as the schedule sees it: the numbers of the steps it needs, and its GPU slots."""

    needs: tuple[int, ...] = ()
    gpus: frozenset[str] = frozenset()


class _State(Enum):
    WAITING = "waiting"
    READY = "ready"
    RUNNING = "running"
    DONE = "done"


class Schedule:
    """The steps of a run, from waiting to done."""

    def __init__(self, nodes: Sequence[Node], jobs: int) -> None:
        """Plan for steps.

        Args:
            nodes: all steps; none needs itself, directly or not.
            jobs: how many may run at a time.
        """
        self._nodes = nodes
        self._jobs = jobs
        self._states = [_State.WAITING] * len(nodes)
        self._missing = [len(set(node.needs)) for node in nodes]
        self._dependents: list[list[int]] = [[] for _ in nodes]
        for number, node in enumerate(nodes):
            for need in set(node.needs):
                self._dependents[need].append(number)
        self._ready: dict[frozenset[str], list[int]] = {}
        self._busy: set[str] = set()
        self._running = 0
        self._left = len(nodes)
        self._fresh: list[int] = []
        for number, missing in enumerate(self._missing):
            if not missing:
                self._fresh.append(number)

    @property
    def done(self) -> bool:
        """Whether every step has ended or will never start."""
        return self._left == 0

    @property
    def running(self) -> int:
        """How many steps run."""
        return self._running

    def newly_ready(self) -> list[int]:
        """Return the steps whose needs have passed since the last call, each once.

        The caller either settles one at once (``finish``) or lets it queue (``queue``).
        """
        fresh, self._fresh = sorted(self._fresh), []
        return fresh

    def queue(self, number: int) -> None:
        """Let a ready step wait for a free place."""
        self._states[number] = _State.READY
        heapq.heappush(self._ready.setdefault(self._nodes[number].gpus, []), number)

    def next(self) -> int | None:
        """Return a step that may start now and count it as running, or None."""
        if self._running >= self._jobs:
            return None
        reserved: set[str] = set()
        for gpus, waiting in sorted(self._ready.items(), key=lambda item: item[1][0]):
            if gpus & (self._busy | reserved):
                reserved |= gpus
                continue
            number = heapq.heappop(waiting)
            if not waiting:
                del self._ready[gpus]
            self._states[number] = _State.RUNNING
            self._running += 1
            self._busy |= gpus
            return number
        return None

    def finish(self, number: int, *, good: bool) -> list[tuple[int, int]]:
        """Count a step as ended.

        Args:
            number: the step; it ran, or is settled without running.
            good: whether the steps that need it may start.

        Returns:
            The steps that will never start because of it, each with the need that it lacks.
        """
        if self._states[number] is _State.RUNNING:
            self._running -= 1
            self._busy -= self._nodes[number].gpus
        self._settle(number)
        if not good:
            return self._block(number)
        for dependent in self._dependents[number]:
            self._missing[dependent] -= 1
            if not self._missing[dependent] and self._states[dependent] is _State.WAITING:
                self._fresh.append(dependent)
        return []

    def abandon(self) -> list[int]:
        """Give up every step that has not started, and return them in order."""
        open_states = (_State.WAITING, _State.READY)
        given_up = [n for n, state in enumerate(self._states) if state in open_states]
        for number in given_up:
            self._settle(number)
        self._ready.clear()
        self._fresh.clear()
        return given_up

    def _settle(self, number: int) -> None:
        self._states[number] = _State.DONE
        self._left -= 1

    def _block(self, number: int) -> list[tuple[int, int]]:
        blocked: list[tuple[int, int]] = []
        todo = [number]
        while todo:
            need = todo.pop()
            for dependent in self._dependents[need]:
                if self._states[dependent] is not _State.DONE:
                    self._settle(dependent)
                    blocked.append((dependent, need))
                    todo.append(dependent)
        return sorted(blocked)


def find_cycle(needs: Sequence[Iterable[int]]) -> list[int]:
    """Return steps that need each other in a circle, or an empty list."""
    open_needs = [set(each) for each in needs]
    dependents: list[list[int]] = [[] for _ in open_needs]
    for number, each in enumerate(open_needs):
        for need in each:
            dependents[need].append(number)
    free = [number for number, each in enumerate(open_needs) if not each]
    left = set(range(len(open_needs)))
    while free:
        number = free.pop()
        left.discard(number)
        for dependent in dependents[number]:
            open_needs[dependent].discard(number)
            if not open_needs[dependent]:
                free.append(dependent)
    if not left:
        return []
    path = [min(left)]
    while True:  # every step left needs another one that is left
        following = min(need for need in open_needs[path[-1]] if need in left)
        if following in path:
            return path[path.index(following) :]
        path.append(following)
