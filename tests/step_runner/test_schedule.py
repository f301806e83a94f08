from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tipcheck.step_runner.schedule import Node, Schedule, find_cycle

if TYPE_CHECKING:
    from random import Random


def ready(schedule: Schedule) -> None:
    for number in schedule.newly_ready():
        schedule.queue(number)


def take_all(schedule: Schedule) -> list[int]:
    ready(schedule)
    taken = []
    while (number := schedule.next()) is not None:
        taken.append(number)
    return taken


def test_steps_start_in_order_up_to_the_limit() -> None:
    schedule = Schedule([Node(), Node(), Node()], jobs=2)
    assert take_all(schedule) == [0, 1]
    schedule.finish(1, good=True)
    assert take_all(schedule) == [2]
    assert schedule.running == 2


def test_a_step_waits_for_all_it_needs() -> None:
    schedule = Schedule([Node(), Node(), Node((0, 1, 0))], jobs=9)
    assert take_all(schedule) == [0, 1]
    schedule.finish(0, good=True)
    assert take_all(schedule) == []
    schedule.finish(1, good=True)
    assert take_all(schedule) == [2]


def test_what_needs_a_bad_step_is_blocked_with_the_need_named() -> None:
    schedule = Schedule([Node(), Node((0,)), Node((1,)), Node()], jobs=9)
    take_all(schedule)
    assert schedule.finish(0, good=False) == [(1, 0), (2, 1)]
    assert not schedule.done
    schedule.finish(3, good=True)
    assert schedule.done


def test_a_step_with_two_bad_needs_is_blocked_once() -> None:
    schedule = Schedule([Node(), Node(), Node((0, 1))], jobs=9)
    take_all(schedule)
    assert schedule.finish(0, good=False) == [(2, 0)]
    assert schedule.finish(1, good=False) == []
    assert schedule.done


def test_gpus_are_never_shared_and_wide_steps_are_not_starved() -> None:
    zero, one, both = frozenset("0"), frozenset("1"), frozenset("01")
    schedule = Schedule(
        [Node(gpus=zero), Node(gpus=both), Node(gpus=one), Node(), Node(gpus=zero)], jobs=9
    )
    # 2 could use GPU 1 now, but 1 waits for it since before
    assert take_all(schedule) == [0, 3]
    schedule.finish(0, good=True)
    assert take_all(schedule) == [1]
    schedule.finish(1, good=True)
    assert take_all(schedule) == [2, 4]


def test_a_settled_step_takes_no_place() -> None:
    schedule = Schedule([Node(), Node((0,))], jobs=1)
    assert schedule.newly_ready() == [0]
    schedule.finish(0, good=True)
    assert take_all(schedule) == [1]


def test_abandoned_steps_never_start() -> None:
    schedule = Schedule([Node(), Node(), Node((1,))], jobs=1)
    assert take_all(schedule) == [0]
    assert schedule.abandon() == [1, 2]
    assert not schedule.done
    schedule.finish(0, good=True)
    assert schedule.done
    assert take_all(schedule) == []


@given(
    st.lists(st.tuples(st.sets(st.integers(0, 30)), st.sets(st.sampled_from("012"))), max_size=30),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_any_run_comes_to_its_end(
    raw: list[tuple[set[int], set[str]]], jobs: int, random: Random
) -> None:
    nodes = [
        Node(tuple(need for need in needs if need < number), frozenset(gpus))
        for number, (needs, gpus) in enumerate(raw)
    ]
    schedule = Schedule(nodes, jobs)
    running: list[int] = []
    seen: set[int] = set()
    while not schedule.done:
        running += take_all(schedule)
        assert running, "nothing runs, yet the run is not done"
        assert len(running) <= jobs
        used = [gpu for number in running for gpu in nodes[number].gpus]
        assert len(used) == len(set(used))
        number = running.pop(random.randrange(len(running)))
        assert number not in seen
        seen.add(number)
        blocked = schedule.finish(number, good=random.random() < 0.8)
        seen.update(each for each, _ in blocked)
    assert seen == set(range(len(nodes)))


def test_a_circle_is_found() -> None:
    assert find_cycle([[], [0], [1]]) == []
    assert find_cycle([[], [2], [3], [1]]) == [1, 2, 3]
    assert find_cycle([[0]]) == [0]
    assert find_cycle([[1], [2], [1]]) == [1, 2]
