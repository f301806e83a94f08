"""Paddle Inference with subgraphs run by TensorRT, in float32."""

from __future__ import annotations

from functools import partial

from tipcheck.backends.stages import StageKind, register
from tipcheck.backends.tensorrt import start_tensorrt

register(StageKind("trt_fp32", partial(start_tensorrt, "trt_fp32"), inference=True, onto="gpu"))
