"""Makes a graph from the programs that a PIR predictor printed while it was built."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from tipcheck.backends.graph import ABSENT, Graph, GraphOp, GraphValue, PassRecord
from tipcheck.backends.graphs.pir_text import PrintedOp, PrintedProgram, PrintedType, read_programs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PARAMETER, _CONSTANT = "builtin.parameter", "builtin.constant"
_NOT_RUN = {_PARAMETER, _CONSTANT, "pd_op.data", "pd_op.feed", "builtin.shadow_output"}
_OUTPUT = ("builtin.shadow_output", "pd_op.fetch")
_TAKES_APART = ("builtin.split", "builtin.slice")
"""What takes a vector of tensors apart: it has no number, unlike what puts one together."""
_OWN = {
    "data_format_tensors",
    "dynamic_fallback",
    "extra_args",
    "is_onednn_only",
    "kernel_key",
    "kernel_name",
    "op_name",
    "origin_id",
    "place",
    "skip_transform_inputs",
    "stop_gradient",
    "struct_name",
}
"""Attributes that say how an op is run, not what it computes."""

_FOLDING = "constant_folding"


def graph_of_prints(
    lines: Iterable[str], model: str, run_mode: str
) -> tuple[Graph, dict[int, int]] | None:
    """Return the graph of the last program printed, or None where none was.

    With it comes, for the number in the name that a variable gets at run time, the value it holds.
    """
    first: PrintedProgram | None = None
    before: PrintedProgram | None = None
    last: PrintedProgram | None = None
    passes: list[PassRecord] = []
    leaves: dict[str, tuple[str, ...]] = {}
    for program in read_programs(lines):
        first = first or program
        if program.when == "before":
            before = program
        elif before is not None and before.pass_name == program.pass_name:
            passes.append(_record(before, program))
            if program.pass_name.startswith(_FOLDING):
                leaves.update(_folded(before.ops(), program.ops(), leaves))
        last = program
    if first is None or last is None:
        return None
    builder = _Builder(last.ops(), leaves)
    return builder.graph(model, run_mode, tuple(passes), first.ops()), builder.numbers


def _record(before: PrintedProgram, after: PrintedProgram) -> PassRecord:
    old, new = before.types(), after.types()
    removed, added = Counter(old), Counter(new)
    removed.subtract(new)
    added.subtract(old)
    return PassRecord(before.pass_name, dict(+removed), dict(+added))


def _folded(
    before: list[PrintedOp], after: list[PrintedOp], known: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return what each constant that folding made was made from.

    Folding replaces operands and leaves everything else as it is, so the ops that are left stand in
    the same order, and what was an op's operand tells what the constant in its place is.
    """
    leaves = leaves_of(before, known)
    names = {op.results[0]: constant_name(op) for op in after if op.name in (_PARAMETER, _CONSTANT)}
    found: dict[str, tuple[str, ...]] = {}
    old = [op for op in before if op.type not in _NOT_RUN]
    new = [op for op in after if op.type not in _NOT_RUN]
    for one, other in _survivors(old, new):
        for was, now in zip(one.operands, other.operands, strict=False):
            name = names.get(now)
            if name and was in leaves:
                found.setdefault(name, leaves[was])
    return found


def _survivors(old: list[PrintedOp], new: list[PrintedOp]) -> Iterable[tuple[PrintedOp, PrintedOp]]:
    ours, theirs = ([_likeness(op) for op in ops] for ops in (old, new))
    for one, other, size in SequenceMatcher(
        None, ours, theirs, autojunk=False
    ).get_matching_blocks():
        yield from zip(old[one : one + size], new[other : other + size], strict=True)


def _likeness(op: PrintedOp) -> tuple[object, ...]:
    shapes = tuple((item.dtype, item.shape) for item in op.types)
    return base_type(op.type), op.attributes.get("struct_name", ""), len(op.operands), shapes


def base_type(name: str) -> str:
    """Return an op type without the underscore of its in-place form."""
    return name.removesuffix("_")


def constant_name(op: PrintedOp) -> str:
    """Return the name under which a parameter or constant is kept."""
    return str(op.attributes.get("parameter_name", op.attributes.get("value", "")))


def leaves_of(
    ops: list[PrintedOp], known: Mapping[str, tuple[str, ...]]
) -> dict[int, tuple[str, ...]]:
    """Return what each constant of a program is made from; other values are not in it."""
    leaves: dict[int, tuple[str, ...]] = {}
    for op in ops:
        if op.name in (_PARAMETER, _CONSTANT):
            name = constant_name(op)
            leaves[op.results[0]] = known.get(name, (name,))
        elif op.type not in _NOT_RUN and all(key < 0 or key in leaves for key in op.operands):
            parts = [leaf for key in op.operands if key >= 0 for leaf in leaves[key]]
            made = tuple(dict.fromkeys(parts)) or (_text(op),)
            leaves.update(dict.fromkeys(op.results, made))
    return leaves


def _text(op: PrintedOp) -> str:
    value = op.attributes.get("value", op.attributes)
    if not isinstance(value, dict):
        return "=" + str(value).replace(" ", "")
    kept = {key: item for key, item in value.items() if key not in _OWN}
    return "=" + op.type + str(kept).replace(" ", "")


class _Builder:
    """Turns printed ops into a graph; vectors of tensors become their elements."""

    def __init__(self, ops: list[PrintedOp], folded: Mapping[str, tuple[str, ...]]) -> None:
        self._ops = ops
        self._leaves = leaves_of(ops, folded)
        self._values: list[GraphValue] = []
        self._of: dict[int, tuple[int, ...]] = {ABSENT: (ABSENT,)}
        self._inputs: dict[str, int] = {}
        self._outputs: list[int] = []
        self._parameters: dict[str, int] = {}
        self._extra = 0  # elements of vectors are numbered too, right behind their vector
        self.numbers: dict[int, int] = {}

    def graph(
        self, model: str, run_mode: str, passes: tuple[PassRecord, ...], exported: list[PrintedOp]
    ) -> Graph:
        ops: list[GraphOp] = []
        runs = [op for op in self._ops if op.type not in _NOT_RUN and op.name not in _TAKES_APART]
        sources = _sources(exported, runs)
        for op in self._ops:
            if op.name in _OUTPUT:
                self._outputs += [key for item in op.operands for key in self._of[item]]
            elif op.name in (_PARAMETER, _CONSTANT):
                self._constant(op)
            elif op.type in ("pd_op.data", "pd_op.feed"):
                (key,) = self._add(op, -1)
                self._inputs[str(op.attributes.get("name", ""))] = key
            elif op.name in _TAKES_APART:
                self._rename(op, [key for item in op.operands for key in self._of[item]])
            else:
                ops.append(self._run(op, len(ops), sources.get(id(op), -1)))
        return Graph(
            model=model,
            run_mode=run_mode,
            kind="pir",
            values=tuple(self._values),
            ops=tuple(ops),
            inputs=self._inputs,
            outputs=tuple(self._outputs),
            parameters=self._parameters,
            passes=passes,
        )

    def _constant(self, op: PrintedOp) -> None:
        name = constant_name(op)
        (key,) = self._add(op, -1, name)
        if op.name == _PARAMETER:
            self._parameters[name] = key

    def _run(self, op: PrintedOp, index: int, source: int) -> GraphOp:
        operands = tuple(key for item in op.operands for key in self._of[item])
        if op.name == "builtin.combine":
            self._of[op.results[0]] = operands
            results: tuple[int, ...] = ()
        else:
            results = self._add(op, index)
        return GraphOp(
            index=index,
            type=op.type,
            operands=operands,
            results=results,
            attributes={key: item for key, item in op.attributes.items() if key not in _OWN},
            layer_path=str(op.attributes.get("struct_name", "")),
            source=source,
        )

    def _rename(self, op: PrintedOp, operands: list[int]) -> None:
        if op.name == "builtin.slice":
            self._of[op.results[0]] = (operands[int(op.attributes.get("index", 0))],)
        else:
            self._of.update({key: (item,) for key, item in zip(op.results, operands, strict=False)})

    def _add(self, op: PrintedOp, producer: int, name: str = "") -> tuple[int, ...]:
        made: list[int] = []
        for result, kind in zip(op.results, op.types, strict=False):
            elements = (kind,) if kind.elements is None else kind.elements
            keys = tuple(self._value(result, item, producer, name) for item in elements)
            self._of[result] = keys
            number = result + self._extra
            if kind.elements is not None:
                self._extra += len(keys)
                number += 1
            self.numbers.update({number + place: key for place, key in enumerate(keys)})
            made += keys
        return tuple(made)

    def _value(self, printed: int, kind: PrintedType, producer: int, name: str) -> int:
        key = len(self._values)
        leaves = self._leaves.get(printed, ())
        self._values.append(GraphValue(key, name, kind.dtype, kind.shape, producer, leaves))
        return key


def _sources(exported: list[PrintedOp], runs: list[PrintedOp]) -> dict[int, int]:
    """Return, for each op that runs, the position of the same op in the exported program."""
    place = {id(op): position for position, op in enumerate(exported)}
    old: list[Any] = [op for op in exported if op.type not in _NOT_RUN]
    return {id(new): place[id(one)] for one, new in _survivors(old, runs)}
