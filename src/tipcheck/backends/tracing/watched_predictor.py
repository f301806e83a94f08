"""A predictor of Paddle Inference that is watched, and the graph of what it really runs.

Only for worker processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.calibration import calibrated
from tipcheck.backends.exports.parameters import check_export
from tipcheck.backends.graph import Graph, GraphOp, PassRecord
from tipcheck.backends.graphs.pdmodel import graph_of_program, read_program, types_of
from tipcheck.backends.graphs.pir import graph_of_prints
from tipcheck.backends.tracing.crash import crash_of
from tipcheck.backends.tracing.observe import Watcher
from tipcheck.backends.tracing.run_modes import (
    PLAIN,
    Calls,
    ModeSettings,
    apply_calls,
    collecting_calls,
    config_calls,
)
from tipcheck.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from tipcheck.backends.tracing.observe import Array, Sink

_QUANTISED = ("quantize_linear", "dequantize_linear", "fake_quantize", "fake_dequantize")


class WatchedPredictor:
    """One predictor, the graph it runs, and a hook that can be switched on.

    Args:
        model: the exported ``.json`` or ``.pdmodel`` file.
        run_mode: how to run it.
        settings: what the mode is told.
        folder: where files of this run may be written.
        first: inputs, needed where shapes have to be collected before the predictor is made.
    """

    def __init__(
        self,
        model: str,
        run_mode: str,
        settings: ModeSettings,
        folder: Path,
        first: Mapping[str, Array] | None = None,
    ) -> None:
        self._model, self._mode, self._folder = model, run_mode, folder
        self._settings = settings
        self._quantised = _is_quantised(model)
        self._first = first
        self._predictor, self.graph, numbers = self._make()
        if run_mode == "onednn_int8" and not any(map(_to_eight_bits, self.graph.ops)):
            raise UsageError(
                "Paddle accepts int8, and its passes put no op of this model into int8",
                where=run_mode,
                hint="give a quantised model, saved as .pdmodel, or take onednn_fp32",
            )
        self._watcher = Watcher(self.graph, numbers)
        self._hooked = False

    def run(
        self, inputs: Mapping[str, Array], sink: Sink | None, want: Collection[int] | None
    ) -> dict[str, Array]:
        """Run once; return the outputs by name, in the model's order.

        Args:
            inputs: by name.
            sink: called with each tensor; None runs without any observation.
            want: ids of the values that are wanted; None means all.
        """
        if sink is not None and not self._hooked:
            self._predictor.register_output_hook(self._watcher.hook)
            self._hooked = True
        check_inputs(self.graph, inputs)
        self._watcher.watch(sink, want)
        feed(self._predictor, inputs, self._model)
        try:
            self._predictor.run()
        except Exception as error:  # noqa: BLE001 - whatever Paddle raises is the answer
            self._watcher.watch(None, None)
            raise crash_of(error, self.graph) from None
        failure = self._watcher.failure
        self._watcher.watch(None, None)
        if failure is not None:
            raise failure
        names = self._predictor.get_output_names()
        return {name: self._predictor.get_output_handle(name).copy_to_cpu() for name in names}

    def _make(self) -> tuple[Any, Graph, dict[int, int]]:
        from paddle import inference

        check_export(
            Path(self._model), Path(self._settings.params) if self._settings.params else None
        )
        settings = self._prepared()
        calls = config_calls(self._mode, settings, quantised=self._quantised)
        older = self._model.endswith(".pdmodel")
        optimised = older and self._mode != PLAIN
        shown: Calls = (("switch_ir_debug", True),)
        if optimised:
            shown += (
                ("enable_save_optim_model", True),
                ("set_optim_cache_dir", str(self._folder)),
            )
        printed = self._folder / "programs.txt"

        def make() -> Any:  # noqa: ANN401 - Paddle has no types
            printed.unlink(missing_ok=True)
            config = make_config(self._model, calls, settings)
            apply_calls(config, shown, inference.PrecisionType)
            with _written_to(printed):
                return inference.create_predictor(config)

        here = Path.cwd()
        os.chdir(self._folder)  # where the older format writes one file per pass
        try:
            predictor = self._calibrated(make)
        finally:
            os.chdir(here)
        if older:
            return predictor, self._older_graph(optimised=optimised), {}
        with printed.open(encoding="utf-8", errors="replace") as lines:
            made = graph_of_prints(lines, self._model, self._mode)
        printed.unlink()
        if made is None:
            raise ToolError(
                "Paddle printed no program while it made the predictor",
                where=self._model,
                hint="report this with the version of PaddlePaddle",
            )
        return predictor, *made

    def _prepared(self) -> ModeSettings:
        """Return settings with the shapes TensorRT asks for, collected where none are given."""
        settings = self._settings
        if not self._mode.startswith("trt_") or settings.shapes or settings.shape_file:
            return settings
        if self._first is None:
            raise UsageError(
                "TensorRT needs the shapes of the inputs",
                where=self._mode,
                hint="give inputs, or shapes",
            )
        from dataclasses import replace

        from paddle import inference

        target = str(self._folder / "shapes.pbtxt")
        config = make_config(self._model, collecting_calls(settings, target), settings)
        collector = inference.create_predictor(config)
        feed(collector, self._first, self._model)
        collector.run()
        del collector  # this is when the shapes are written
        return replace(settings, shape_file=target)

    def _calibrated(self, make: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Return the predictor; for int8 without scales, one that has seen the samples first."""
        if self._mode != "trt_int8" or self._quantised:
            return make()
        path = Path(self._settings.calibration)

        def run(predictor: Any, sample: Mapping[str, Array]) -> None:  # noqa: ANN401
            feed(predictor, sample, str(path))
            predictor.run()

        return calibrated(make, run, path)

    def _older_graph(self, *, optimised: bool) -> Graph:
        exported = read_program(Path(self._model))
        saved = sorted(self._folder.glob("*_optimized.pdmodel")) if optimised else []
        if not saved:
            return graph_of_program(exported, self._model, self._mode)
        passes = _passes(exported, self._folder, saved[0])
        data = saved[0].read_bytes()
        return graph_of_program(data, self._model, self._mode, exported, passes)


def check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> None:
    """Refuse inputs whose type or shape the program does not take."""
    for name, key in graph.inputs.items():
        value, given = graph.values[key], inputs.get(name)
        if given is None or not value.dtype:
            continue
        if str(given.dtype) != value.dtype:
            raise UsageError(
                f"input {name!r} is {given.dtype}",
                where=graph.model,
                hint=f"the model takes {value.dtype}",
            )
        fits = len(given.shape) == len(value.shape) and all(
            wanted in (-1, length) for wanted, length in zip(value.shape, given.shape, strict=True)
        )
        if not fits:
            shape = ", ".join("any" if length < 0 else str(length) for length in value.shape)
            raise UsageError(
                f"input {name!r} has shape {list(given.shape)}",
                where=graph.model,
                hint=f"the model takes [{shape}]",
            )


def make_config(model: str, calls: Calls, settings: ModeSettings) -> Any:  # noqa: ANN401
    """Return a ``Config`` on which the calls were made. Only for worker processes."""
    from paddle import inference

    params = settings.params or str(Path(model).with_suffix(".pdiparams"))
    config = inference.Config(model, params)
    apply_calls(config, calls, inference.PrecisionType)
    return config


def _passes(exported: bytes, folder: Path, last: Path) -> tuple[PassRecord, ...]:
    """Return what each pass changed, from the program that each has left behind."""
    left = [path for path in folder.glob("*_pass.pdmodel") if path != last]
    left.sort(key=lambda path: path.stat().st_mtime_ns)
    records, before = [], types_of(exported)
    for path in left:
        after = types_of(path.read_bytes())
        records.append(PassRecord(path.stem, dict(before - after), dict(after - before)))
        before = after
        path.unlink()
    for path in folder.glob("*.dot"):
        path.unlink()
    return tuple(records)


def _to_eight_bits(op: GraphOp) -> bool:
    return op.type.rpartition(".")[2] in ("quantize", "requantize")


def _is_quantised(model: str) -> bool:
    text = Path(model).read_bytes()
    return any(name.encode() in text for name in _QUANTISED)


def feed(predictor: Any, inputs: Mapping[str, Array], where: str) -> None:  # noqa: ANN401
    """Give a predictor its inputs, which have to be there by name."""
    names = predictor.get_input_names()
    missing = [name for name in names if name not in inputs]
    if missing:
        raise UsageError(
            f"there is no input {', '.join(map(repr, missing))}",
            where=where,
            hint=f"the model takes {', '.join(names)}; given are {', '.join(inputs) or 'none'}",
        )
    for name in names:
        handle = predictor.get_input_handle(name)
        handle.reshape(list(inputs[name].shape))
        handle.copy_from_cpu(inputs[name])


@contextlib.contextmanager
def _written_to(path: Path) -> Iterator[None]:
    """Send what C++ prints to a file for a while."""
    sys.stdout.flush()
    kept = os.dup(1)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            ctypes.CDLL(None).fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
