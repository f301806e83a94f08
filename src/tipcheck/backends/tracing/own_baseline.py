"""Baselines that exist only in the user's own process: a layer, or a predictor they built.

What cannot be sent to a worker is brought into a form that can: a layer is exported as it is now,
and a predictor is run here, once, with a hook that keeps every tensor it shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.backends.tracing.observe import UnreadableError, values_of
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from tipcheck.backends.graph import Graph
    from tipcheck.backends.subject import InputSpec

    Array = npt.NDArray[Any]

_OFF = (False,)


def is_layer(thing: Any) -> bool:  # noqa: ANN401 - anything a user may give
    """Whether something is a dygraph layer."""
    from paddle.nn import Layer

    return isinstance(thing, Layer)


def export_layer(layer: Any, specs: Sequence[InputSpec], folder: Path) -> Path:  # noqa: ANN401
    """Export a layer as it is now, with the inputs of another export; return the program."""
    import paddle

    prefix = folder / "layer"
    names = [
        paddle.static.InputSpec(
            [extent if extent >= 0 else None for extent in spec.shape], spec.dtype, spec.name
        )
        for spec in specs
    ]
    training = layer.training
    layer.eval()
    try:
        paddle.jit.save(layer, str(prefix), input_spec=names)
    except (TypeError, ValueError, RuntimeError) as error:
        told = " ".join(str(error).split())[:200]
        raise UsageError(
            f"the layer cannot be exported with the model's inputs ({told})",
            hint="export it yourself, and give baseline_model=",
        ) from None
    finally:
        if training:
            layer.train()
    return next(
        file
        for file in (prefix.with_suffix(".json"), prefix.with_suffix(".pdmodel"))
        if file.is_file()
    )


def plain_predictor(model: Path, params: Path | None) -> Any:  # noqa: ANN401 - Paddle has no types
    """Return a predictor without any optimisation, in this process."""
    from paddle import inference

    from tipcheck.backends.tracing.run_modes import PLAIN, ModeSettings, apply_calls, config_calls

    config = inference.Config(str(model), str(params or model.with_suffix(".pdiparams")))
    config.disable_glog_info()
    apply_calls(config, config_calls(PLAIN, ModeSettings()), inference.PrecisionType)
    return inference.create_predictor(config)


class Recorder:
    """Runs a user's predictor and keeps what it shows, by the values of a graph.

    Args:
        predictor: a ``paddle.inference`` predictor, or a ``Config`` to make one of.
        graph: the program that it is taken to run: the plain one of the model.
    """

    def __init__(self, predictor: Any, graph: Graph) -> None:  # noqa: ANN401
        if not hasattr(predictor, "register_output_hook"):
            if not hasattr(predictor, "enable_memory_optim"):
                raise UsageError(
                    f"a {type(predictor).__name__} is no baseline",
                    hint="give a run mode, a golden file, a layer, a predictor or a Config",
                )
            from paddle import inference

            predictor.enable_memory_optim(*_OFF)  # a reused buffer shows what came last
            predictor = inference.create_predictor(predictor)
        self._predictor = predictor
        self._graph = graph
        self._on = False
        self._seen: dict[int, Array] = {}
        self.strangers = 0
        predictor.register_output_hook(self._hook)

    def run(self, feed: Mapping[str, Array]) -> tuple[dict[int, Array], dict[str, Array]]:
        """Run once; return the tensors by their value in the graph, and the final outputs."""
        self._seen, self._on = {}, True
        for name in self._predictor.get_input_names():
            handle = self._predictor.get_input_handle(name)
            handle.reshape(list(feed[name].shape))
            handle.copy_from_cpu(feed[name])
        self._predictor.run()
        self._on = False
        names = self._predictor.get_output_names()
        outputs = {name: self._predictor.get_output_handle(name).copy_to_cpu() for name in names}
        return self._seen, outputs

    def _hook(self, op: str, name: str, tensor: Any) -> None:  # noqa: ANN401
        key = self._value(op, name, tuple(tensor.shape)) if self._on else -1
        if key < 0 or key in self._seen:
            return
        try:
            self._seen[key] = values_of(tensor).copy()
        except UnreadableError:
            return  # it is not in the file, and its row says so

    def _value(self, op: str, name: str, shape: tuple[int, ...]) -> int:
        """Return which value a tensor is; -1 where the program is another than was taken."""
        op_type, _, number = op.rpartition(":")
        at = int(number) if number.isdigit() else -1
        if 0 <= at < len(self._graph.ops) and self._graph.ops[at].type == op_type:
            keys = self._graph.ops[at].results
        else:
            keys = tuple(value.id for value in self._graph.values if value.name == name)
            if not keys:
                self.strangers += 1
        fits = [key for key in keys if _fits(self._graph.values[key].shape, shape)]
        return fits[0] if len(fits) == 1 else -1


def _fits(declared: Sequence[int], shape: Sequence[int]) -> bool:
    return len(declared) == len(shape) and all(
        want in (-1, have) for want, have in zip(declared, shape, strict=True)
    )
