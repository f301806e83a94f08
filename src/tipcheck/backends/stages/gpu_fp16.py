"""Paddle Inference on the GPU, in float16 where it can."""

from __future__ import annotations

from functools import partial

from tipcheck.backends.predictor_runner import start_predictor
from tipcheck.backends.stages import StageKind, register

register(
    StageKind(
        "gpu_fp16",
        partial(start_predictor, "gpu_fp16"),
        inference=True,
        precision="float16",
        onto="gpu",
    )
)
