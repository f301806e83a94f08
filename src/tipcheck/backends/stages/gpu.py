"""Paddle Inference on the GPU, in float32."""

from __future__ import annotations

from functools import partial

from tipcheck.backends.predictor_runner import start_predictor
from tipcheck.backends.stages import StageKind, register

register(StageKind("gpu", partial(start_predictor, "gpu"), inference=True, onto="inference"))
