"""Paddle Inference with the kernels of oneDNN."""

from __future__ import annotations

from functools import partial

from tipcheck.backends.predictor_runner import start_predictor
from tipcheck.backends.stages import StageKind, register

register(
    StageKind(
        "onednn",
        partial(start_predictor, "onednn"),
        inference=True,
        onto="inference_ir",
        packs=True,
    )
)
