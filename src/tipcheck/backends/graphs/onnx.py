"""Makes a graph from an ONNX file: converters keep the names of parameters, which counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.backends.graph import ABSENT, Graph, GraphOp, GraphValue

if TYPE_CHECKING:
    from pathlib import Path

_MADE_UP = ("p2o.", "helper.")
"""How names start that the converter gives to constants of its own."""
_SHOWN = 16


def graph_of_onnx(path: Path, model: str, run_mode: str) -> Graph:
    """Return the graph of an ONNX file.

    Args:
        path: the file.
        model: what it was converted from.
        run_mode: what runs it.
    """
    import onnx

    loaded = onnx.load(str(path))
    try:
        loaded = onnx.shape_inference.infer_shapes(loaded)
    except (RuntimeError, ValueError):  # larger than 2 GB, or an op it does not know
        return _Reader(loaded.graph).graph(model, run_mode)
    return _Reader(loaded.graph).graph(model, run_mode)


class _Reader:
    def __init__(self, graph: Any) -> None:  # noqa: ANN401 - a protobuf message
        self._graph = graph
        told = [*graph.value_info, *graph.input, *graph.output]
        self._told = {info.name: info.type.tensor_type for info in told}
        self._values: list[GraphValue] = []
        self._now: dict[str, int] = {"": ABSENT}

    def graph(self, model: str, run_mode: str) -> Graph:
        initial = {item.name for item in self._graph.initializer}
        parameters: dict[str, int] = {}
        for item in self._graph.initializer:
            parameters[item.name] = self._constant(item.name, item)
        inputs = {
            info.name: self._add(info.name, -1)
            for info in self._graph.input
            if info.name not in initial
        }
        ops: list[GraphOp] = []
        for node in self._graph.node:
            if node.op_type == "Constant":
                key = self._constant(node.output[0], _tensor(node))
                parameters[node.output[0]] = key
                continue
            operands = tuple(self._now.get(name, ABSENT) for name in node.input)
            leaves = self._leaves(operands, node.op_type)
            index = len(ops)
            results = tuple(self._add(name, index, leaves) for name in node.output if name)
            ops.append(
                GraphOp(index, node.op_type, operands, results, _attributes(node), node.name)
            )
        return Graph(
            model=model,
            run_mode=run_mode,
            kind="onnx",
            values=tuple(self._values),
            ops=tuple(ops),
            inputs=inputs,
            outputs=tuple(self._now[info.name] for info in self._graph.output),
            parameters=parameters,
        )

    def _constant(self, name: str, tensor: Any) -> int:  # noqa: ANN401
        leaves = (name,)
        if name.startswith(_MADE_UP):
            from onnx import numpy_helper

            array = numpy_helper.to_array(tensor) if tensor is not None else None
            small = array is not None and array.size <= _SHOWN
            leaves = ("=" + str(array.tolist()).replace(" ", "") if small else "=" + name,)  # type: ignore[union-attr]
        return self._add(name, -1, leaves)

    def _leaves(self, operands: tuple[int, ...], op_type: str) -> tuple[str, ...]:
        parts: list[str] = []
        for key in operands:
            if key >= 0 and not self._values[key].leaves:
                return ()
            parts += self._values[key].leaves if key >= 0 else ()
        return tuple(dict.fromkeys(parts)) or (f"={op_type}",)

    def _add(self, name: str, producer: int, leaves: tuple[str, ...] = ()) -> int:
        from onnx import TensorProto

        key = len(self._values)
        kind = self._told.get(name)
        dtype = ""
        shape: tuple[int, ...] = ()
        if kind is not None and kind.elem_type:
            dtype = {"FLOAT": "float32", "DOUBLE": "float64"}.get(
                TensorProto.DataType.Name(kind.elem_type),
                TensorProto.DataType.Name(kind.elem_type).lower(),
            )
            if kind.HasField("shape"):
                shape = tuple(
                    dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim
                )
        known = bool(dtype) and kind is not None and kind.HasField("shape")
        self._values.append(GraphValue(key, name, dtype if known else "", shape, producer, leaves))
        self._now[name] = key
        return key


def _tensor(node: Any) -> Any:  # noqa: ANN401
    return next((item.t for item in node.attribute if item.name == "value"), None)


def _attributes(node: Any) -> dict[str, Any]:  # noqa: ANN401
    from onnx import helper

    found: dict[str, Any] = {}
    for item in node.attribute:
        value = helper.get_attribute_value(item)
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        if isinstance(value, (int, float, str)):
            found[item.name] = value
        elif isinstance(value, list) and all(isinstance(one, (int, float)) for one in value):
            found[item.name] = list(value)
    return found
