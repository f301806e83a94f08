"""TensorRT behind the stages that use it: what has to be known before an engine can be built.

An engine is built for a range of shapes, so the plain program runs on all inputs of the ladder
first and says which shapes every tensor has. For int8 the scales come from the model, or from
samples that it is shown. What TensorRT writes goes into a folder of the ladder, never beside the
user's model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.calibration import GET_SCALES, NO_SCALES, calibrated
from tipcheck.backends.exports.program import read_program
from tipcheck.backends.predictor import make_predictor, run_predictor, tensorrt_calls
from tipcheck.backends.predictor_runner import PredictorRunner
from tipcheck.backends.stages import Place, UnusedError
from tipcheck.backends.tracing.run_modes import ModeSettings, collecting_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    Feed = dict[str, Any]


def start_tensorrt(stage: str, place: Place) -> PredictorRunner:
    """Load a model with TensorRT.

    Raises:
        UnusedError: int8 has no scales.
    """
    model = place.exported()
    samples = str(place.extra.get("calibration") or "")
    calibrates = stage == "trt_int8" and not read_program(model).quantised
    if calibrates and not samples:
        raise UnusedError(f"{NO_SCALES}; {GET_SCALES}")
    calls = tensorrt_calls(
        stage,
        shapes=_shapes_of(model, place),
        cache=str(place.folder),
        calibrates=calibrates,
    )
    if place.threads != 1:
        calls = (*calls, ("set_cpu_math_library_num_threads", place.threads))

    def make() -> Any:  # noqa: ANN401 - Paddle has no types
        return make_predictor(model, stage, calls)

    if not calibrates:
        return PredictorRunner(make())
    return PredictorRunner(calibrated(make, run_predictor, Path(samples)))


def _shapes_of(model: Path, place: Place) -> str:
    """Run the plain program on every input set; return the file with the shapes it met."""
    target = str(place.folder / "shapes.pbtxt")
    collector = make_predictor(model, "gpu", collecting_calls(ModeSettings(), target))
    for feed in _feeds(place):
        run_predictor(collector, feed)
    del collector  # this is when the shapes are written
    return target


def _feeds(place: Place) -> Iterator[Feed]:
    for archive in place.extra.get("sets", ()):
        if archive:
            with np.load(archive, allow_pickle=False) as arrays:
                yield {name: arrays[name] for name in arrays.files}
