"""Paddle Inference with subgraphs run by TensorRT in int8, which takes calibration data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tipcheck.backends.stages import Place, StageKind, UnusedError, register

if TYPE_CHECKING:
    from tipcheck.backends.predictor_runner import PredictorRunner


def start(place: Place) -> PredictorRunner:
    """Refuse a model that nobody calibrated: its scales would be made up."""
    raise UnusedError(
        f"{place.exported().name} holds no scales from calibration; "
        "calibrate it with TensorRT first, and verify trt_fp16 until then"
    )


register(StageKind("trt_int8", start, precision="int8", inference=True, onto="trt_fp32"))
