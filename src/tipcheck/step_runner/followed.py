"""An engine whose steps are followed by a piece of work in this process before they count as ended.

A step that ran well may still have given something wrong. What finds that out needs what the step
left behind, and the step's outcome has to be that of both, in the ledger too: so the engine holds
the end of a step back until the work that follows it is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING

from tipcheck.step_runner.contract import End, Engine, Job

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

Before = Callable[[Job], Job]
"""Prepares a job that is about to start."""
After = Callable[[Job, End], End]
"""Takes a job that ended by itself with code 0; returns how it ended, all things considered."""


class FollowedEngine:
    """Wraps another engine."""

    def __init__(
        self,
        inner: AbstractContextManager[Engine],
        before: Before,
        after: After,
        workers: int,
    ) -> None:
        """Say what goes before and after each job, and how many may be followed at a time."""
        self._context = inner
        self._before = before
        self._after = after
        self._workers = workers
        self._jobs: dict[int, Job] = {}
        self._following: dict[Future[End], Job] = {}
        self._stopped = False

    def __enter__(self) -> FollowedEngine:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._inner = self._context.__enter__()
        self._pool = ThreadPoolExecutor(self._workers)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every job; work that has begun is waited for, since its threads cannot be ended."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._context.__exit__(kind, error, trace)

    @property
    def name(self) -> str:
        """The word that ``--engine`` takes."""
        return self._inner.name

    def start(self, job: Job) -> None:
        """Prepare a job and begin it."""
        prepared = self._before(job)
        self._jobs[job.attempt] = prepared
        self._inner.start(prepared)

    def wait(self, timeout: float) -> Sequence[End]:
        """Return the jobs that have ended, those whose work is done among them."""
        ends: list[End] = []
        heard: Sequence[End] = ()
        if self._jobs:
            heard = self._inner.wait(0.0 if self._is_one_done() else min(timeout, 0.02))
        elif self._following:
            wait(self._following, timeout, return_when=FIRST_COMPLETED)
        else:
            time.sleep(timeout)
        for end in heard:
            job = self._jobs.pop(end.attempt)
            if end.exit_code == 0 and not (end.trouble or end.cut) and not self._stopped:
                self._following[self._pool.submit(self._after, job, end)] = job
            else:
                ends.append(end)
        return ends + self._take()

    def _is_one_done(self) -> bool:
        return any(future.done() for future in self._following)

    def _take(self) -> list[End]:
        """Return the ends whose work is done; when stopped, all others as interrupted."""
        ends = []
        for future, job in [*self._following.items()]:
            if future.done() and not future.cancelled():
                ends.append(_result(future, job))
            elif self._stopped:
                future.cancel()
                ends.append(End(key=job.key, attempt=job.attempt, cut="stopped"))
            else:
                continue
            del self._following[future]
        return ends

    def stop(self) -> None:
        """End every job; work that follows one is not waited for, its job runs again next time."""
        self._stopped = True
        self._inner.stop()


def _result(future: Future[End], job: Job) -> End:
    error = future.exception()
    if error is None:
        return future.result()
    told = " ".join(f"{type(error).__name__}: {error}".split())
    return End(key=job.key, attempt=job.attempt, trouble=told)


def with_trouble(end: End, trouble: str, note: str = "") -> End:
    """Return an end that says what the work behind it found; an empty text lets it be good."""
    return replace(end, trouble=trouble, log_note="; ".join(filter(None, (end.log_note, note))))
