"""Paddle Inference with subgraphs run by TensorRT in int8, with scales or calibration data."""

from __future__ import annotations

from functools import partial

from tipcheck.backends.stages import StageKind, register
from tipcheck.backends.tensorrt import start_tensorrt

register(
    StageKind(
        "trt_int8",
        partial(start_tensorrt, "trt_int8"),
        inference=True,
        precision="int8",
        onto="trt_fp32",
    )
)
