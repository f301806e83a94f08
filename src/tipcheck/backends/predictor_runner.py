"""Paddle Inference behind the stages that use it: one runner, configured by the table of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.backends.predictor import CONFIG_CALLS, make_predictor, run_predictor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tipcheck.backends.stages import Place


class PredictorRunner:
    """A predictor, and the order in which it takes its inputs."""

    def __init__(self, predictor: Any) -> None:  # noqa: ANN401 - Paddle has no types
        self.predictor = predictor
        self.notes: tuple[str, ...] = ()

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        """Return the outputs of one run."""
        return run_predictor(self.predictor, dict(feed))

    def clone(self) -> PredictorRunner:
        """Return a predictor that shares the weights."""
        return PredictorRunner(self.predictor.clone())


def start_predictor(stage: str, place: Place, *, quiet: bool = True) -> PredictorRunner:
    """Load a model the way a stage says."""
    model = place.exported()
    calls = CONFIG_CALLS[stage]
    if place.threads != 1:
        calls = (*calls, ("set_cpu_math_library_num_threads", place.threads))
    return PredictorRunner(make_predictor(model, stage, calls, quiet=quiet))
