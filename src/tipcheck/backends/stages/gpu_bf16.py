"""Paddle Inference on the GPU, in bfloat16 where it can."""

from __future__ import annotations

from functools import partial

from tipcheck.backends.predictor_runner import start_predictor
from tipcheck.backends.stages import StageKind, register

register(
    StageKind(
        "gpu_bf16",
        partial(start_predictor, "gpu_bf16"),
        inference=True,
        precision="bfloat16",
        onto="gpu",
    )
)
