from __future__ import annotations

from tests.blame.graphs import network
from tipcheck.blame.segments import last_use, segment_of


def test_a_segment_ends_at_the_nearest_observed_tensors() -> None:
    found = segment_of(network(), 5, observed=(3,))
    assert found.ops == (1, 2)
    assert found.inputs == (3,)
    assert found.parameters == ("norm.w",)


def test_without_any_it_goes_back_to_the_models_inputs() -> None:
    found = segment_of(network(), 5, observed=())
    assert found.ops == (0, 1, 2)
    assert found.inputs == (0,)
    assert found.parameters == ("conv.w", "norm.w")


def test_an_observed_tensor_is_not_its_own_start() -> None:
    assert segment_of(network(), 5, observed=(4, 5)).ops == (2,)


def test_a_branch_is_followed_on_both_sides() -> None:
    found = segment_of(network(), 7, observed=(5,))
    assert found.ops == (3, 4)
    assert found.inputs == (5,)


def test_every_op_lies_in_the_segment_of_the_first_observed_tensor_after_it() -> None:
    graph = network()
    observed: list[int] = []
    covered: list[int] = []
    for target in (5, 7, 9):
        covered += segment_of(graph, target, observed).ops
        observed.append(target)
    assert sorted(covered) == list(range(6))


def test_a_tensor_is_needed_until_the_last_segment_that_starts_from_it() -> None:
    graph = network()
    segments = [segment_of(graph, 5, ()), segment_of(graph, 7, (5,)), segment_of(graph, 9, (5, 7))]
    assert last_use(segments) == {0: 0, 5: 1, 7: 2, 9: 2}
