"""Paddle Inference that reuses the memory of tensors nobody reads any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tipcheck.backends.predictor_runner import start_predictor
from tipcheck.backends.stages import Place, StageKind, UnusedError, register

if TYPE_CHECKING:
    from tipcheck.backends.predictor_runner import PredictorRunner


def start(place: Place) -> PredictorRunner:
    """Load the model; say so where this Paddle has no memory reuse for its format."""
    try:
        return start_predictor("inference_memory", place)
    except ValueError as error:
        if "memory_optimize_pass" not in str(error):
            raise
        raise UnusedError(
            f"this Paddle cannot reuse memory for {place.exported().suffix} exports; "
            "it does for .pdmodel, which FLAGS_enable_pir_api=0 exports"
        ) from None


register(StageKind("inference_memory", start, inference=True))
