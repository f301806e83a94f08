"""Paddle Inference with the kernels of oneDNN, in bfloat16 where they can."""

from __future__ import annotations

from functools import partial

from tipcheck.backends.predictor_runner import start_predictor
from tipcheck.backends.stages import StageKind, register

register(
    StageKind(
        "onednn_bf16",
        partial(start_predictor, "onednn_bf16"),
        inference=True,
        precision="bfloat16",
        onto="onednn",
        packs=True,
    )
)
