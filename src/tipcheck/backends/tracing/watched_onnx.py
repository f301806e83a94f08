"""ONNX Runtime and OpenVINO while they are watched: every intermediate tensor becomes an output.

Neither has hooks. Tensors are asked for a few at a time, and the model is run once for each few, so
that memory stays bounded; they come in op order all the same. Asking for a tensor keeps it from
being fused away, which is why a run without observation has to be compared too.

Only for worker processes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tipcheck.backends.graphs.onnx import graph_of_onnx
from tipcheck.backends.trace import TracedTensor
from tipcheck.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from tipcheck.backends.tracing.observe import Array, Sink

_AT_ONCE = 64
_OPSET = 16


class WatchedOnnx:
    """One model on another runtime.

    Args:
        model: an exported model of Paddle, which is converted, or an ``.onnx`` file.
        params: its parameters.
        run_mode: ``onnxruntime`` or ``openvino``.
        folder: where the converted file goes.
        first: inputs; with these the shapes of all tensors are found out by a run, because what the
            file says of them is often nothing.
    """

    def __init__(
        self,
        model: str,
        params: str,
        run_mode: str,
        folder: Path,
        first: Mapping[str, Array] | None = None,
    ) -> None:
        self._file = _converted(model, params, folder)
        self._runtime = _Openvino() if run_mode == "openvino" else _OnnxRuntime()
        self.graph = graph_of_onnx(self._file, model, run_mode)
        self._outputs = [self.graph.values[key].name for key in self.graph.outputs]
        if first is not None:
            self._measure(first)

    def _measure(self, first: Mapping[str, Array]) -> None:
        seen: dict[int, TracedTensor] = {}
        self.run(first, lambda tensor, _: seen.update({tensor.value: tensor}), None)
        values = tuple(
            replace(value, dtype=seen[value.id].dtype, shape=seen[value.id].shape)
            if value.id in seen
            else value
            for value in self.graph.values
        )
        self.graph = replace(self.graph, values=values)

    def run(
        self, inputs: Mapping[str, Array], sink: Sink | None, want: Collection[int] | None
    ) -> dict[str, Array]:
        """Run and return the outputs by name; give tensors to the sink."""
        missing = [name for name in self.graph.inputs if name not in inputs]
        if missing:
            raise UsageError(
                f"there is no input {', '.join(map(repr, missing))}",
                where=self.graph.model,
                hint=f"the model takes {', '.join(self.graph.inputs)}",
            )
        given = {name: inputs[name] for name in self.graph.inputs}
        if sink is not None:
            self._show(given, sink, want)
        found = self._runtime.run(self._file, self._outputs, given)
        return {name: found[name] for name in self._outputs}

    def _show(self, given: dict[str, Array], sink: Sink, want: Collection[int] | None) -> None:
        shown = [
            (op, key)
            for op in self.graph.ops
            for key in op.results
            if not self.graph.values[key].leaves and (want is None or key in want)
        ]
        index = 0
        for start in range(0, len(shown), _AT_ONCE):
            part = shown[start : start + _AT_ONCE]
            names = [self.graph.values[key].name for _, key in part]
            found = self._runtime.run(self._file, names, given)
            for (op, key), name in zip(part, names, strict=True):
                values = found.pop(name, None)
                if values is None:
                    continue  # the runtime has no such tensor any more
                traced = TracedTensor(
                    index=index,
                    op_type=op.type,
                    name=name,
                    layer_path=op.layer_path,
                    dtype=str(values.dtype),
                    layout="NCHW",
                    shape=tuple(values.shape),
                    op_index=op.index,
                    value=key,
                )
                index += 1
                sink(traced, values)


class _OnnxRuntime:
    """One session per set of outputs that is asked for."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, ...], Any] = {}

    def run(self, file: Path, names: list[str], given: dict[str, Array]) -> dict[str, Array]:
        session = self._session(file, names)
        return dict(zip(names, session.run(names, given), strict=True))

    def _session(self, file: Path, names: list[str]) -> Any:  # noqa: ANN401
        import onnx
        import onnxruntime

        key = tuple(names)
        if key not in self._sessions:
            model = onnx.load(str(file))
            own = {output.name for output in model.graph.output}
            model.graph.output.extend(
                onnx.ValueInfoProto(name=name) for name in names if name not in own
            )
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            exposed = file.with_name("exposed.onnx")
            onnx.save(model, str(exposed))
            self._sessions = {
                key: onnxruntime.InferenceSession(
                    str(exposed), options, providers=["CPUExecutionProvider"]
                )
            }
        return self._sessions[key]


class _Openvino:
    """One compiled model per set of outputs that is asked for."""

    def run(self, file: Path, names: list[str], given: dict[str, Array]) -> dict[str, Array]:
        import numpy as np
        import openvino

        core = openvino.Core()
        model = core.read_model(str(file))
        there = {name for op in model.get_ops() for out in op.outputs() for name in out.get_names()}
        own = {name for output in model.outputs for name in output.get_names()}
        kept = [name for name in names if name in there]
        model.add_outputs([name for name in kept if name not in own])
        # Left to itself OpenVINO computes in bfloat16 wherever the CPU can.
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        results = compiled(given)
        found = {}
        for output in compiled.outputs:
            for name in output.get_names() & set(kept):
                found[name] = np.array(results[output])
        return found


def _converted(model: str, params: str, folder: Path) -> Path:
    from pathlib import Path as File

    if model.endswith(".onnx"):
        return File(model)
    import paddle2onnx

    target = folder / "model.onnx"
    # The default optimiser runs Polygraphy, which may try to install packages.
    paddle2onnx.export(
        model, params, str(target), opset_version=_OPSET, verbose=False, optimize_tool="None"
    )
    if not target.is_file():
        raise ToolError("paddle2onnx wrote no file", where=model, hint="see what it printed above")
    return target
