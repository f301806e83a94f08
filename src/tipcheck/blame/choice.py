"""Which tensors to look at: what a user says, turned into the ids of values.

Looking at everything is the default. Less is asked for to save time and memory, and because a part
of a network is often enough: between two tensors, by type of op, by layer, the outputs of fused
ops, or every k-th and then those around the first bad one.
"""

from __future__ import annotations

import fnmatch
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tipcheck.backends.graph import Graph, GraphOp
    from tipcheck.blame.alignment import Alignment

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Choice:
    """What to look at; everything that is given has to be true of a tensor.

    Attributes:
        fused: only outputs of ops that do the work of several.
        between: from the first to the last of two tensors, both included.
        op_types: types of ops, patterns included, such as ``*conv2d*``.
        layers: layer paths, patterns included; a path stands for everything below it.
        patterns: of names of tensors.
        names: exact names, such as those of a file.
        every: every k-th tensor only; 1 takes all of them.
    """

    fused: bool = False
    between: tuple[str, str] | None = None
    op_types: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    every: int = 1

    @property
    def is_all(self) -> bool:
        """Whether nothing was said."""
        return self == Choice()


def choose(graph: Graph, alignment: Alignment, choice: Choice, baseline: Graph) -> list[int]:
    """Return the values of the candidate to look at, in op order.

    A tensor can be called by its name, by its op and number (``conv2d:7``), or by the same of its
    partner in the baseline; names of the candidate are not stable.

    Raises:
        UsageError: a name or pattern fits no tensor, or nothing is left.
    """
    if choice.every < 1:
        raise UsageError(f"every {choice.every}th tensor cannot be taken", hint="give --every 2")
    tests = _tests(graph, alignment, choice, baseline)
    order = [value for op in graph.ops for value in op.results]
    floating = [value for value in order if graph.values[value].floating]
    span = _between(choice.between, order, graph, alignment, baseline)
    left = [value for value in floating if value in span and all(test(value) for test in tests)]
    if not left:
        raise UsageError(
            "no tensor fits all that was asked for", hint="ask for less, or leave the choice out"
        )
    taken = left[choice.every - 1 :: choice.every]
    return taken or left[-1:]


def narrow(values: Sequence[int], seen: Collection[int], bad: int) -> list[int]:
    """Return the values between the last good one seen and the first bad one, to look at next."""
    at = values.index(bad)
    start = max((place for place in range(at) if values[place] in seen), default=-1)
    return [value for value in values[start + 1 : at] if value not in seen]


def read_names(text: str, *, engine: bool = False) -> tuple[str, ...]:
    """Return the names in a file: one a line, or the first cell of a line of CSV.

    Args:
        text: what is in the file.
        engine: it is an ``engine_info_*.json`` that TensorRT's inspector wrote: the names of the
            outputs of its layers, without what TensorRT added to them.
    """
    if engine:
        layers = json.loads(text)
        layers = layers.get("Layers", []) if isinstance(layers, dict) else layers
        outputs = [item["Name"] for layer in layers for item in layer.get("Outputs", ())]
        return tuple(dict.fromkeys(name.partition("_subgraph")[0] for name in outputs))
    lines = (line.split("#", 1)[0].split(",")[0].strip().strip('"') for line in text.splitlines())
    return tuple(line for line in lines if line)


def names_of(graph: Graph, value: int) -> tuple[str, ...]:
    """Return what a value of one graph can be called."""
    item, op = graph.values[value], graph.op_of(value)
    called = [item.name] if item.name else []
    if op is not None:
        short = op.type.rpartition(".")[2]
        called += [
            f"{op.type}:{op.index}",
            f"{short}:{op.index}",
            f"{short.rstrip('_')}:{op.index}",
        ]
    return tuple(called)


def _tests(
    graph: Graph, alignment: Alignment, choice: Choice, baseline: Graph
) -> list[Callable[[int], bool]]:
    tests: list[Callable[[int], bool]] = []
    if choice.fused:
        several = {pairing.candidate for pairing in alignment.pairings if len(pairing.covers) > 1}
        tests.append(several.__contains__)
    if choice.op_types:
        wanted = _found(
            choice.op_types, {name for op in graph.ops for name in _types(op)}, "op type"
        )
        tests.append(lambda value: bool(wanted.intersection(_types(_op(graph, value)))))
    if choice.layers:
        paths = {op.layer_path.strip("/") for op in graph.ops if op.layer_path}
        roots = tuple(_layer(pattern) for pattern in choice.layers)
        _found(roots, paths, "layer", below=True)
        tests.append(lambda value: _in_layers(_op(graph, value).layer_path, roots))
    if choice.patterns or choice.names:
        every = {value: _called(graph, alignment, baseline, value) for value in _values(graph)}
        known = {name for names in every.values() for name in names}
        wanted_names = _found((*choice.patterns, *choice.names), known, "tensor")
        tests.append(lambda value: bool(wanted_names.intersection(every[value])))
    return tests


def _values(graph: Graph) -> list[int]:
    return [value for op in graph.ops for value in op.results]


def _called(graph: Graph, alignment: Alignment, baseline: Graph, value: int) -> tuple[str, ...]:
    partner = alignment.partners.get(value)
    theirs = () if partner is None else names_of(baseline, partner)
    return (*names_of(graph, value), *theirs)


def _op(graph: Graph, value: int) -> GraphOp:
    op = graph.op_of(value)
    assert op is not None  # noqa: S101 - only results of ops are asked about
    return op


def _types(op: GraphOp) -> tuple[str, str, str]:
    short = op.type.rpartition(".")[2]
    return op.type, short, short.rstrip("_")


def _layer(pattern: str) -> str:
    return pattern.strip("/")


def _in_layers(path: str, roots: Sequence[str]) -> bool:
    plain = path.strip("/")
    return any(
        plain == root or plain.startswith(f"{root}/") or fnmatch.fnmatchcase(plain, root)
        for root in roots
    )


def _found(
    wanted: Sequence[str], known: Collection[str], what: str, *, below: bool = False
) -> set[str]:
    """Return all that the patterns fit; one that fits nothing is an error."""
    fits: set[str] = set()
    for pattern in wanted:
        mine = set(fnmatch.filter(known, pattern)) | ({pattern} & set(known))
        if below:
            mine |= {name for name in known if name.startswith(f"{pattern}/")}
        if not mine:
            some = ", ".join(sorted(known)[:_SHOWN]) or "none"
            raise UsageError(
                f"no {what} of the program is called {pattern!r}",
                hint=f"there are {len(known)}, such as {some}",
            )
        fits |= mine
    return fits


def _between(
    ends: tuple[str, str] | None,
    order: Sequence[int],
    graph: Graph,
    alignment: Alignment,
    baseline: Graph,
) -> Collection[int]:
    if ends is None:
        return set(order)
    places = []
    for end in ends:
        fits = [
            place
            for place, value in enumerate(order)
            if end in _called(graph, alignment, baseline, value)
        ]
        if not fits:
            known = [names_of(baseline, value)[-1] for value in _values(baseline)[:_SHOWN]]
            raise UsageError(
                f"no tensor is called {end!r}",
                hint=f"there are, in the baseline, {', '.join(known)} …",
            )
        places.append(fits[0])
    first, last = sorted(places)
    return set(order[first : last + 1])
