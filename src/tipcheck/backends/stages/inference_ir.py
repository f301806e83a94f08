"""Paddle Inference with its graph passes on."""

from __future__ import annotations

from functools import partial

from tipcheck.backends.predictor_runner import start_predictor
from tipcheck.backends.stages import StageKind, register

register(
    StageKind(
        "inference_ir", partial(start_predictor, "inference_ir"), inference=True, onto="inference"
    )
)
