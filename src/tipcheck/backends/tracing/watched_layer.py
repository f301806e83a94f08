"""A dygraph layer while it is watched: what each of its sub-layers gives back.

The layer is exported once, so that there is a graph to align with; it is not the export that runs,
but the layer itself, op by op. A sub-layer's output is the last value of the ops that carry its
path in that graph. Sub-layers and paths are paired in the order in which they run, by the class
that stands in both.

Only for worker processes.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.trace import TracedTensor
from tipcheck.backends.tracing.observe import UnreadableError, dtype_of, values_of
from tipcheck.backends.tracing.run_modes import PLAIN, ModeSettings
from tipcheck.backends.tracing.watched_predictor import WatchedPredictor, check_inputs
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tipcheck.backends.graph import Graph
    from tipcheck.backends.tracing.observe import Array, Sink

_SEED = 0
_AHEAD = 3
"""How many of the program's layers may lie between two calls."""


class WatchedLayer:
    """A layer made by a function of the user's.

    Args:
        source: ``FILE.py:NAME``, where NAME is a layer, or gives one when called.
        first: inputs by name, in the order of the layer's parameters.
        folder: where the export goes.
    """

    def __init__(self, source: str, first: Mapping[str, Array] | None, folder: Path) -> None:
        import paddle

        if first is None:
            raise UsageError(
                "a layer can only be traced with inputs", where=source, hint="give an .npz file"
            )
        paddle.seed(_SEED)
        self._layer = _make(source)
        self._layer.eval()
        specs = [
            paddle.static.InputSpec([None, *array.shape[1:]], str(array.dtype), name)
            for name, array in first.items()
        ]
        target = folder / "layer"
        paddle.jit.save(self._layer, str(target), input_spec=specs)
        exported = WatchedPredictor(f"{target}.json", PLAIN, ModeSettings(), folder).graph
        self.graph = replace(exported, kind="dygraph", model=source, run_mode="dygraph")

        self._values = self._paired(first)

    def run(
        self, inputs: Mapping[str, Array], sink: Sink | None, want: Collection[int] | None
    ) -> dict[str, Array]:
        """Run the layer itself once."""
        check_inputs(self.graph, inputs)
        place = 0

        def look(layer: Any, given: Any, output: Any) -> None:  # noqa: ANN401, ARG001
            nonlocal place
            if sink is not None:
                self._show(sink, want, type(layer).__name__, place, output)
            place += 1

        outputs = self._forward(inputs, look)
        return {f"output_{index}": array for index, array in enumerate(outputs)}

    def _forward(self, inputs: Mapping[str, Array], look: Any) -> list[Array]:  # noqa: ANN401
        import paddle

        leaves = [layer for layer in self._layer.sublayers() if not layer.sublayers()]
        hooks = [layer.register_forward_post_hook(look) for layer in leaves]
        try:
            # A layer that was converted would run its graph otherwise.
            paddle.jit.enable_to_static(False)  # noqa: FBT003 - Paddle's
            with paddle.no_grad():
                given = self._layer(*(paddle.to_tensor(inputs[name]) for name in self.graph.inputs))
        finally:
            paddle.jit.enable_to_static(True)  # noqa: FBT003
            for hook in hooks:
                hook.remove()
        return [tensor.numpy() for tensor in paddle.utils.flatten(given)]

    def _paired(self, first: Mapping[str, Array]) -> dict[int, int]:
        """Return, for each call of a sub-layer, the value that it gives back."""
        called: list[tuple[str, tuple[int, ...]]] = []

        def look(layer: Any, given: Any, output: Any) -> None:  # noqa: ANN401, ARG001
            shape = tuple(output.shape) if hasattr(output, "shape") else ()
            called.append((type(layer).__name__, shape))

        self._forward(first, look)
        kinds = {name for name, _ in called}
        runs = [
            (kind, key) for path, key in _runs(self.graph) if (kind := _class_in(path)) in kinds
        ]
        paired: dict[int, int] = {}
        cursor = 0
        for place, (name, shape) in enumerate(called):
            # A sub-layer that does nothing when exported has no op; one op is never skipped for it.
            for ahead, (kind, key) in enumerate(runs[cursor : cursor + _AHEAD]):
                if kind == name and len(shape) == len(self.graph.values[key].shape):
                    paired[place] = key
                    cursor += ahead + 1
                    break
        return paired

    def _show(
        self,
        sink: Sink,
        want: Collection[int] | None,
        kind: str,
        place: int,
        output: Any,  # noqa: ANN401
    ) -> None:
        if not hasattr(output, "dtype"):
            return
        key = self._values.get(place, -1)
        values, because = None, ""
        if want is None or key in want:
            try:
                values = values_of(output)
            except UnreadableError as error:
                because = str(error)
        producer = self.graph.op_of(key) if key >= 0 else None
        sink(
            TracedTensor(
                index=place,
                op_type=kind,
                name=output.name,
                layer_path=producer.layer_path if producer else "",
                dtype=dtype_of(output),
                layout=str(output.layout),
                shape=tuple(output.shape),
                readable=not because,
                op_index=producer.index if producer else -1,
                value=key,
                unreadable_because=because,
            ),
            values,
        )


def _class_in(path: str) -> str:
    """Return the class that a layer path ends with; a number behind it counts equal siblings."""
    last = path.strip("/").rpartition("/")[2]
    name, _, number = last.rpartition("_")
    return name if number.isdigit() and name else last


def _runs(graph: Graph) -> list[tuple[str, int]]:
    """Return the layer paths in the order in which they run, each with its last value."""
    found: list[tuple[str, int]] = []
    for op in graph.ops:
        if not op.results or not op.layer_path:
            continue
        if found and found[-1][0] == op.layer_path:
            found.pop()
        found.append((op.layer_path, op.results[0]))
    return found


def _make(source: str) -> Any:  # noqa: ANN401
    file, _, name = source.rpartition(":")
    path = Path(file)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise UsageError("there is no such Python file", where=source, hint="write FILE.py:NAME")
    sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    made = getattr(module, name, None)
    if made is None:
        raise UsageError(f"has no {name!r}", where=file, hint="write FILE.py:NAME")
    return made if hasattr(made, "sublayers") and not isinstance(made, type) else made()
