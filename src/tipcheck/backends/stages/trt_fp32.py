"""Paddle Inference with subgraphs run by TensorRT, in float32."""

from __future__ import annotations

from functools import partial

from tipcheck.backends.predictor_runner import start_predictor
from tipcheck.backends.stages import StageKind, register

register(StageKind("trt_fp32", partial(start_predictor, "trt_fp32"), inference=True, onto="gpu"))
