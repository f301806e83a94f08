"""Chooses what runs a model while it is watched: Paddle Inference, or another runtime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tipcheck.backends.tracing.machine import check_machine
from tipcheck.backends.tracing.run_modes import DYGRAPH, ModeSettings, by_predictor, check_mode
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tipcheck.backends.graph import Graph
    from tipcheck.backends.tracing.observe import Array, Sink


class Watched(Protocol):
    """One execution that can be run with or without being watched."""

    graph: Graph

    def run(
        self, inputs: Mapping[str, Array], sink: Sink | None, want: Collection[int] | None
    ) -> dict[str, Array]:
        """Run once and return the outputs; give tensors to the sink."""


def make_watched(
    model: str,
    run_mode: str,
    settings: ModeSettings,
    folder: Path,
    first: Mapping[str, Array] | None = None,
) -> Watched:
    """Return the execution of a model in a run mode."""
    check_mode(run_mode)
    check_machine(run_mode)
    if run_mode == DYGRAPH:
        from tipcheck.backends.tracing.watched_layer import WatchedLayer

        return WatchedLayer(model, first, folder)
    if not Path(model).is_file():
        raise UsageError("there is no such file", where=model, hint="check the path of the model")
    if not by_predictor(run_mode):
        from tipcheck.backends.tracing.watched_onnx import WatchedOnnx

        params = settings.params or str(Path(model).with_suffix(".pdiparams"))
        return WatchedOnnx(model, params, run_mode, folder, first)
    from tipcheck.backends.tracing.watched_predictor import WatchedPredictor

    return WatchedPredictor(model, run_mode, settings, folder, first)
