"""Finds the values of a program that runs in the program that was exported.

Before a program runs, Paddle drops its constants, merges what is computed twice, renames ops that
work in place and numbers everything anew, even with every optimisation off. A piece of a model can
be computed alone only from the exported program, so every value has to be found there again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from tipcheck.backends.graphs.orientation import TRANSPOSE, plain_type

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tipcheck.backends.exports.program_text import ProgramText
    from tipcheck.backends.graph import Graph, GraphOp

_NOT_WHAT_IT_COMPUTES = frozenset({"struct_name", "op_callstack", "place"})
_PASSED_ON = frozenset(
    {TRANSPOSE, "memcpy", "memcpy_h2d", "memcpy_d2h", "transfer_layout", "shadow_feed"}
)


def map_by_place(graph: Graph, program: ProgramText) -> dict[int, int]:
    """Return, for values of the graph that were found, their ids in the exported program.

    An op of the graph says where it stands in the exported program; one of another type there is
    not believed.
    """
    found = _leaves(graph, program)
    claimed = {op.source for op in graph.ops}
    for op in graph.ops:
        kind = plain_type(op.type)
        if op.source < 0 and kind in _PASSED_ON:
            if op.operands and op.operands[0] in found:
                found.update(dict.fromkeys(op.results, found[op.operands[0]]))
            continue
        place = op.source if op.source >= 0 else _by_operands(op, program, found, claimed)
        if place < 0 or plain_type(program.type_at(place)) != kind:
            continue
        for ours, theirs in zip(op.results, program.flat_results(place), strict=False):
            if theirs is not None:
                found[ours] = theirs
    return found


def _by_operands(
    op: GraphOp, program: ProgramText, found: Mapping[int, int], claimed: Collection[int]
) -> int:
    """Return the place of an op that was given another layout: same type, made from the same."""
    first = found.get(op.operands[0]) if op.operands else None
    kind = plain_type(op.type)
    fitting = [
        place
        for place in program.places_using(first)
        if place not in claimed and plain_type(program.type_at(place)) == kind
    ]
    return fitting[0] if len(fitting) == 1 else -1


def map_by_name(
    graph: Graph, program: ProgramText, names: Mapping[str, Sequence[int]]
) -> dict[int, int]:
    """Return the same where every value of the program is known by name, as older exports are.

    A name that is used again stands for several values, in the order in which they are made.
    """
    taken: dict[str, int] = defaultdict(int)
    found: dict[int, int] = {}
    for value in graph.values:
        places = names.get(value.name, ())
        if not value.name or not places:
            continue
        at = min(taken[value.name], len(places) - 1)
        taken[value.name] += 1
        found[value.id] = places[at]
    return {**found, **_leaves(graph, program)}


def twins(program: ProgramText) -> dict[int, list[int]]:
    """Return, for each value that is computed more than once, all values that are the same.

    A program that runs computes it once, so only one of them is ever observed.
    """
    first: dict[str, list[int]] = {}
    canonical: dict[int, int] = {}
    same: dict[int, list[int]] = {}
    for at, op in enumerate(program.ops):
        results = program.results_of(at)
        operands = [canonical.get(value, value) for value in program.operands_of(at)]
        attributes = [item for item in op["A"] if item["N"] not in _NOT_WHAT_IT_COMPUTES]
        key = json.dumps([op["#"], operands, attributes], sort_keys=True)
        original = results if op.get("regions") else first.setdefault(key, results)
        for value, one in zip(results, original, strict=True):
            canonical[value] = one
            if value != one:
                group = same.setdefault(one, [one])
                group.append(value)
                same[value] = group
    return same


def _leaves(graph: Graph, program: ProgramText) -> dict[int, int]:
    inputs, parameters = program.inputs, program.parameters
    found = {value: inputs[name] for name, value in graph.inputs.items() if name in inputs}
    for name, value in graph.parameters.items():
        if name in parameters:
            found[value] = parameters[name][0]
    return found
