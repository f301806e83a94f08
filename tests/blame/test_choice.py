from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.blame.graphs import network
from tipcheck.blame.alignment import Alignment, Match, Pairing
from tipcheck.blame.choice import Choice, choose, narrow, read_names
from tipcheck.errors import UsageError

GRAPH = network()
FUSED = Pairing(5, 5, Match.FUSED, covers=(0, 1, 2))
SAME = [Pairing(key, key, Match.SAME_OP, covers=(key,)) for key in (3, 4, 6, 7, 9)]
ALIGNMENT = Alignment((*SAME, FUSED))
ALL = [3, 4, 5, 6, 7, 9]


def chosen(**what: object) -> list[int]:
    return choose(GRAPH, ALIGNMENT, Choice(**what), GRAPH)  # type: ignore[arg-type]


def test_everything_by_default() -> None:
    assert Choice().is_all
    assert chosen() == ALL


def test_outputs_of_fused_ops() -> None:
    assert chosen(fused=True) == [5]


@pytest.mark.parametrize("name", ["pd_op.batch_norm_", "batch_norm", "*norm*"])
def test_by_type_of_op(name: str) -> None:
    assert chosen(op_types=(name,)) == [4]


def test_by_layer_and_all_below_it() -> None:
    assert chosen(layers=("Net/Head",)) == [9]
    assert chosen(layers=("/Net/Conv2D/",)) == [3]


def test_by_name_pattern_or_number() -> None:
    assert chosen(patterns=("t[34]",)) == [3, 4]
    assert chosen(names=("conv2d:0", "t9")) == [3, 9]


def test_between_two_tensors_both_included() -> None:
    assert chosen(between=("t4", "pool2d:3")) == [4, 5, 6]
    assert chosen(between=("t6", "t4")) == [4, 5, 6]


def test_everything_that_is_said_has_to_be_true() -> None:
    assert chosen(between=("t4", "t7"), op_types=("relu", "add")) == [5, 7]


def test_every_kth_and_then_those_before_the_first_bad_one() -> None:
    assert chosen(every=2) == [4, 6, 9]
    assert chosen(every=50) == [9]
    assert narrow(ALL, seen=(4, 6, 9), bad=9) == [7]
    assert narrow(ALL, seen=(9,), bad=9) == [3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    "what",
    [
        {"op_types": ("lstm",)},
        {"layers": ("Nowhere",)},
        {"names": ("t99",)},
        {"between": ("t4", "nothing")},
        {"fused": True, "op_types": ("add",)},
        {"every": 0},
    ],
)
def test_what_fits_nothing_is_an_error_and_not_an_empty_table(what: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        chosen(**what)


def test_tensors_that_are_not_floating_are_not_chosen() -> None:
    values = [replace(value, dtype="int64") if value.id == 4 else value for value in GRAPH.values]
    graph = replace(GRAPH, values=tuple(values))
    assert choose(graph, ALIGNMENT, Choice(every=1, op_types=("*",)), graph) == [3, 5, 6, 7, 9]


def test_names_from_a_file_of_lines_of_csv_or_of_an_engine() -> None:
    assert read_names('relu_0.tmp_0\n# no\n"a",1,2\n\n') == ("relu_0.tmp_0", "a")
    layers = [{"Outputs": [{"Name": "relu_0.tmp_0_subgraph_1"}]}, {"Outputs": [{"Name": "y"}]}]
    assert read_names(json.dumps(layers), engine=True) == ("relu_0.tmp_0", "y")
    assert read_names(json.dumps({"Layers": layers}), engine=True) == ("relu_0.tmp_0", "y")
