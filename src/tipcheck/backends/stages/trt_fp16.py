"""Paddle Inference with subgraphs run by TensorRT, in float16."""

from __future__ import annotations

from functools import partial

from tipcheck.backends.stages import StageKind, register
from tipcheck.backends.tensorrt import start_tensorrt

register(
    StageKind(
        "trt_fp16",
        partial(start_tensorrt, "trt_fp16"),
        inference=True,
        precision="float16",
        onto="trt_fp32",
    )
)
