"""Paddle Inference with the int8 kernels of oneDNN, for models that were quantised.

Paddle accepts int8 for every model. Whether it quantised anything its passes say while the
predictor is made, and nothing else does: of a model of whole numbers the answers are the same.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.backends.predictor_runner import start_predictor
from tipcheck.backends.stages import Place, StageKind, UnusedError, register

if TYPE_CHECKING:
    from tipcheck.backends.predictor_runner import PredictorRunner

_TOLD = re.compile(rb"quantized (\d+) \w+ ops\b")


def start(place: Place) -> PredictorRunner:
    """Load the model, and believe it only when a pass says that it put ops into int8."""
    log = Path(str(place.extra["log"]))
    sys.stdout.flush()
    before = log.stat().st_size
    runner = start_predictor("onednn_int8", place, quiet=False)
    ctypes.CDLL(None).fflush(None)
    with log.open("rb") as file:
        file.seek(before)
        count = sum(int(number) for number in _TOLD.findall(file.read()))
    if not count:
        raise UnusedError("Paddle accepts int8, and its passes put no op of this model into int8")
    runner.notes = (f"{count} ops run in int8",)
    return runner


register(
    StageKind("onednn_int8", start, precision="int8", inference=True, onto="onednn", packs=True)
)
