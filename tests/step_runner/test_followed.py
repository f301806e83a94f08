"""An engine whose steps are followed by work: the end of a step waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tipcheck.step_runner.contract import End, Job
from tipcheck.step_runner.followed import FollowedEngine, with_trouble

JOB = Job(key="0", argv=("true",), env={}, cwd="/", log="/dev/null", attempt=1)


class Inner:
    """Ends every job at the next ``wait``, as it is told."""

    name = "inner"

    def __init__(self, end: End) -> None:
        self.end = end
        self.started: list[Job] = []
        self.stopped = False

    def start(self, job: Job) -> None:
        self.started.append(job)

    def wait(self, _timeout: float) -> Sequence[End]:
        jobs, self.started = self.started, []
        return [replace(self.end, key=job.key, attempt=job.attempt) for job in jobs]

    def stop(self) -> None:
        self.stopped = True


@contextmanager
def followed(
    end: End, after: Callable[[Job, End], End], before: Callable[[Job], Job] = lambda job: job
) -> Iterator[tuple[FollowedEngine, Inner]]:
    inner = Inner(end)

    @contextmanager
    def opened() -> Iterator[Inner]:
        yield inner

    with FollowedEngine(opened(), before, after, 2) as engine:
        yield engine, inner


def ends_of(engine: FollowedEngine, within: float = 5.0) -> list[End]:
    ends: list[End] = []
    deadline = time.monotonic() + within
    while not ends and time.monotonic() < deadline:
        ends += engine.wait(0.01)
    return ends


def test_the_end_says_what_the_work_found() -> None:
    with followed(End("", exit_code=0), lambda _, end: with_trouble(end, "it differs")) as both:
        both[0].start(JOB)
        (end,) = ends_of(both[0])
    assert (end.key, end.attempt, end.trouble, end.exit_code) == ("0", 1, "it differs", 0)


def test_good_work_leaves_the_end_as_it_is() -> None:
    with followed(End("", exit_code=0, seconds=2.0), lambda _, end: with_trouble(end, "")) as both:
        both[0].start(JOB)
        (end,) = ends_of(both[0])
    assert end == End("0", 1, exit_code=0, seconds=2.0)
    assert both[0].name == "inner"


def test_a_step_that_failed_is_not_followed() -> None:
    called: list[Job] = []

    def after(job: Job, end: End) -> End:
        called.append(job)
        return end

    for bad in (End("", exit_code=3), End("", signal=11), End("", exit_code=0, cut="timeout")):
        with followed(bad, after) as (engine, _):
            engine.start(JOB)
            assert ends_of(engine) == [replace(bad, key="0", attempt=1)]
    assert not called


def test_work_that_breaks_is_a_failure() -> None:
    def after(_job: Job, _end: End) -> End:
        raise ValueError("no\nsense")

    with followed(End("", exit_code=0), after) as (engine, _):
        engine.start(JOB)
        (end,) = ends_of(engine)
    assert end.trouble == "ValueError: no sense"


def test_what_goes_before_prepares_the_job() -> None:
    with followed(
        End("", exit_code=0), lambda _, end: end, lambda job: replace(job, cwd="/tmp")
    ) as (engine, inner):
        engine.start(JOB)
        assert inner.started[0].cwd == "/tmp"


def test_an_interruption_does_not_wait_for_the_work() -> None:
    release = threading.Event()

    def after(_job: Job, end: End) -> End:
        release.wait(10)
        return end

    with followed(End("", exit_code=0), after) as (engine, inner):
        engine.start(JOB)
        assert engine.wait(0.01) == []
        engine.stop()
        (end,) = ends_of(engine)
        release.set()
    assert inner.stopped
    assert end.interrupted


def test_several_are_followed_side_by_side() -> None:
    together = threading.Barrier(2, timeout=5)

    def after(_job: Job, end: End) -> End:
        together.wait()
        return end

    ends: list[End] = []
    with followed(End("", exit_code=0), after) as (engine, _):
        for attempt in (1, 2):
            engine.start(replace(JOB, attempt=attempt))
        while len(ends) < 2:
            ends += ends_of(engine)
    assert sorted(end.attempt for end in ends) == [1, 2]
