"""What runs on a node of a cluster, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.step_runner.conftest import Jobs
from tipcheck.step_runner import ray_node
from tipcheck.step_runner.contract import End


@pytest.fixture(autouse=True)
def no_engine_left(mark: str) -> Iterator[None]:
    yield
    ray_node._discard()


def test_a_step_that_nobody_waits_for_ends_and_is_not_taken_for_the_next(jobs: Jobs) -> None:
    def broken() -> bool:
        raise RuntimeError("the other end is gone")

    lost = jobs.shell("sleep 600", key="lost", attempt=1)
    with pytest.raises(RuntimeError):
        list(ray_node.run_step((), lost, [], broken))
    following = jobs.shell("echo here; exit 3", key="next", attempt=2)
    *pieces, end = ray_node.run_step((), following, [], lambda: False)
    assert pieces == [b"here\n"]
    assert isinstance(end, End)
    assert (end.key, end.attempt, end.exit_code) == ("next", 2, 3)


def test_a_step_is_stopped_when_the_run_is(jobs: Jobs) -> None:
    job = jobs.shell("sleep 600", attempt=5)
    *_, end = ray_node.run_step((), job, ["1"], lambda: True)
    assert isinstance(end, End)
    assert end.interrupted
