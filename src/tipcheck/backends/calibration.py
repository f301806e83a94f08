"""Calibration data for int8 in TensorRT: when it is needed, what it has to be, how it is used.

Shared by the stage ``trt_int8`` of the ladder and by the run mode of that name, which is watched. A
model that was quantised brings its scales along; any other one has to see real samples first, and
scales that were made up without them would be a result nobody can use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    Sample = dict[str, npt.NDArray[Any]]

NO_SCALES = "int8 needs scales, and this model holds none"
GET_SCALES = "give --calibration FILE.npz with real samples, or a quantised model"


def sample_files(path: Path) -> list[Path]:
    """Return the files of a calibration set: one ``.npz`` file, or all of them in a folder.

    Raises:
        UsageError: there is none.
    """
    if not path.exists():
        raise UsageError(
            f"there is no calibration data {str(path)!r}",
            hint="--calibration takes an .npz file with an array per input, or a folder of them",
        )
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if not files:
        raise UsageError(
            "holds no .npz file to calibrate with",
            where=str(path),
            hint="save samples there with numpy.savez(FILE, name=array)",
        )
    return files


def samples_in(path: Path) -> Iterator[Sample]:
    """Yield the samples of a calibration set, each a batch of inputs by name."""
    for file in sample_files(path):
        with np.load(file, allow_pickle=False) as arrays:
            yield {name: arrays[name] for name in arrays.files}


def calibrated(make: Callable[[], Any], run: Callable[[Any, Sample], object], path: Path) -> Any:  # noqa: ANN401 - Paddle has no types
    """Return a predictor whose int8 scales come from samples.

    The first predictor only watches the samples go by; it writes the scales when it is destroyed,
    and the second one finds them.

    Args:
        make: makes a predictor from a new ``Config``: Paddle lets one be used only once.
        run: runs a predictor on one sample.
        path: where the samples are.
    """
    watching = make()
    for sample in samples_in(path):
        run(watching, sample)
    del watching
    return make()
