"""Makes a graph from a program in the older format, ``.pdmodel``.

The optimised program can be written in this format too (``enable_save_optim_model``), and its ops
run in the order in which they stand there.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tipcheck.backends.exports.program import PROTO_TYPES
from tipcheck.backends.graph import Graph, GraphOp, GraphValue, PassRecord
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_OWN = {
    "op_callstack",
    "op_device",
    "op_namescope",
    "op_role",
    "op_role_var",
    "use_cudnn",
    "use_mkldnn",
    "use_onednn",
    "mkldnn_data_type",
    "onednn_data_type",
    "exhaustive_search",
    "workspace_size_MB",
    "with_quant_attr",
}
"""Attributes that say how an op is run, not what it computes."""

_FIRST = {"Input": 0, "X": 0, "Filter": 1, "Y": 1, "W": 1, "Bias": 2}
_LAST = {"ResidualData": 9, "residual_data": 9}
_FIRST_RESULT = {"Out": 0, "Output": 0, "Y": 0}


def graph_of_program(
    data: bytes,
    model: str,
    run_mode: str,
    exported: bytes | None = None,
    passes: tuple[PassRecord, ...] = (),
) -> Graph:
    """Return the graph of one program.

    Args:
        data: what is in the ``.pdmodel`` file.
        model: path of the exported model.
        run_mode: whose program it is.
        exported: the program before optimisation, where ``data`` is the one after it.
        passes: what was done in between.
    """
    before = None if exported is None else _Program(exported, model)
    return _Program(data, model, before).graph(run_mode, passes)


def types_of(data: bytes) -> Counter[str]:
    """Count the op types of a program."""
    return Counter(op.type for op in _parse(data, "a program").blocks[0].ops)


def read_program(path: Path) -> bytes:
    """Return what is in a ``.pdmodel`` file, once it has been seen to be a program."""
    data = path.read_bytes()
    _parse(data, str(path))
    return data


def _parse(data: bytes, where: str) -> Any:  # noqa: ANN401 - a protobuf message
    from google.protobuf.message import DecodeError
    from paddle.base.proto import framework_pb2

    program = framework_pb2.ProgramDesc()
    try:
        program.ParseFromString(data)
    except DecodeError:
        program.Clear()
    if not program.blocks or not program.blocks[0].ops:
        raise UsageError(
            "is not a program of Paddle, or is cut short", where=where, hint="export it again"
        )
    return program


class _Program:
    """One program with what is known about its variables."""

    def __init__(self, data: bytes, model: str, before: _Program | None = None) -> None:
        self._block = _parse(data, model).blocks[0]
        self._model = model
        self._vars = {variable.name: variable for variable in self._block.vars}
        self._before = before
        self._values: list[GraphValue] = []
        self._now: dict[str, int] = {}
        self.constants: dict[str, int] = {}
        self._inputs: dict[str, int] = {}
        self.folded: dict[str, tuple[str, ...]] = {}
        """What each variable that depends on no input is made from."""

    def graph(self, run_mode: str, passes: tuple[PassRecord, ...] = ()) -> Graph:
        """Walk the ops; a name that is written twice becomes two values."""
        if self._before is not None:
            self._before.graph("")
        ops: list[GraphOp] = []
        outputs: dict[int, int] = {}
        for place, op in enumerate(self._block.ops):
            attributes = {item.name: _attribute(item) for item in op.attrs}
            taken = [name for slot in _ordered(op.inputs) for name in slot.arguments]
            if op.type == "feed":
                name = op.outputs[0].arguments[0]
                self._inputs[name] = self._make(name, -1, ())
            elif op.type == "fetch":
                outputs[int(attributes.get("col", 0))] = self._take(taken[0])
            else:
                ops.append(self._run(op, len(ops), place, attributes))
        return Graph(
            model=self._model,
            run_mode=run_mode,
            kind="pdmodel",
            values=tuple(self._values),
            ops=tuple(ops),
            inputs=self._inputs,
            outputs=tuple(outputs[column] for column in sorted(outputs)),
            parameters=self.constants,
            passes=passes,
        )

    def _run(self, op: Any, index: int, place: int, attributes: dict[str, Any]) -> GraphOp:  # noqa: ANN401
        operands = [self._take(name) for slot in _ordered(op.inputs) for name in slot.arguments]
        kept = {key: value for key, value in attributes.items() if key not in _OWN}
        leaves = self._leaves(operands, op.type, kept)
        results = [
            self._make(name, index, leaves)
            for slot in sorted(op.outputs, key=lambda slot: _FIRST_RESULT.get(slot.parameter, 1))
            for name in slot.arguments
        ]
        scope = str(attributes.get("op_namescope", "")).strip("/")
        return GraphOp(
            index=index,
            type=op.type,
            operands=tuple(operands),
            results=tuple(results),
            attributes=kept,
            layer_path=f"/{scope}" if scope else "",
            source=place if self._before is None else -1,
        )

    def _leaves(
        self, operands: list[int], op_type: str, attributes: dict[str, Any]
    ) -> tuple[str, ...]:
        parts: list[str] = []
        for key in operands:
            if not self._values[key].leaves:
                return ()
            parts += self._values[key].leaves
        return tuple(dict.fromkeys(parts)) or (
            "=" + str(attributes.get("str_value") or attributes.get("value") or op_type),
        )

    def _take(self, name: str) -> int:
        if name in self._now:
            return self._now[name]
        # Not made by any op: a parameter, or a constant that a pass has made.
        known = {} if self._before is None else self._before.folded
        was = self._before is None or name in self._before.constants
        leaves = (name,) if was else known.get(name, ())
        key = self._make(name, -1, leaves)
        self.constants[name] = key
        return key

    def _make(self, name: str, producer: int, leaves: tuple[str, ...]) -> int:
        variable = self._vars.get(name)
        tensor = None if variable is None else _tensor(variable.type)
        if tensor is not None and not tensor.dims and not tensor.data_type:
            tensor = None  # made by a pass, which has not said what it is
        key = len(self._values)
        self._values.append(
            GraphValue(
                id=key,
                name=name,
                dtype="" if tensor is None else PROTO_TYPES.get(tensor.data_type, ""),
                shape=() if tensor is None else tuple(tensor.dims),
                producer=producer,
                leaves=leaves,
            )
        )
        self._now[name] = key
        if leaves:
            self.folded[name] = leaves
        return key


def _tensor(kind: Any) -> Any:  # noqa: ANN401 - a protobuf message
    """Return dtype and shape of a variable; the field was renamed on the way to Paddle 3."""
    field = kind.dense_tensor if hasattr(kind, "dense_tensor") else kind.lod_tensor
    return field.tensor


def _ordered(slots: Iterable[Any]) -> list[Any]:
    """Return operands with the one that is worked on first; protobuf has them by name."""
    order = _FIRST | _LAST
    return sorted(slots, key=lambda slot: order.get(slot.parameter, 5))


def _attribute(item: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of an attribute, whichever of its fields holds it."""
    for field, value in item.ListFields():
        if field.name not in ("name", "type"):
            if isinstance(value, (bool, int, float, str)):
                return value
            try:
                return [
                    item if isinstance(item, (int, float, str)) else str(item) for item in value
                ]
            except TypeError:
                return str(value)
    return None
