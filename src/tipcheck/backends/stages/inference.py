"""Paddle Inference with every optimisation off."""

from __future__ import annotations

from functools import partial

from tipcheck.backends.predictor_runner import start_predictor
from tipcheck.backends.stages import StageKind, register

register(StageKind("inference", partial(start_predictor, "inference"), inference=True))
