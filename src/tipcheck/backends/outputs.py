"""What one stage gave: the contract between ``backends``, which runs, and ``stage_ladder``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class StageOutputs:
    """The answers of one stage to one set of inputs.

    Attributes:
        stage: name of the stage, as in the catalogue.
        samples: how many input sets it was given; fewer than were asked for is a failure.
        outputs: names of the outputs, in the model's order.
        archive: ``.npz`` file that holds them, empty when the worker gave none.
        seconds: wall time of the run, without loading.
        signal: name of the signal the worker died on, or None.
        last_lines: the end of the worker's output, when it died or failed.
    """

    schema: ClassVar[str] = "tipcheck.stage-outputs/1"

    stage: str
    samples: int
    outputs: tuple[str, ...]
    archive: str
    seconds: float = 0.0
    signal: str | None = None
    last_lines: tuple[str, ...] = ()


def distance(one: Sequence[Any], other: Sequence[Any]) -> float:
    """Return the largest difference of two runs, divided by the rms of its output.

    Infinite where shapes, dtypes, integers or the places of NaN differ.
    """
    if len(one) != len(other):
        return float("inf")
    pairs = zip(one, other, strict=True)
    return max((apart(np.asarray(a), np.asarray(b)) for a, b in pairs), default=0.0)


def apart(one: Any, other: Any) -> float:  # noqa: ANN401 - arrays
    """Return the same for two arrays."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return float("inf")
    if np.array_equal(one, other):
        return 0.0
    floating = one.dtype.kind in "fc"
    finite = np.isfinite(one) if floating else np.zeros(one.shape, bool)
    rest = ~finite
    same = np.array_equal(one[rest], other[rest], equal_nan=floating)
    if not same or not np.isfinite(other[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    kept = one[finite].astype(np.complex128 if one.dtype.kind == "c" else np.float64)
    with np.errstate(over="ignore"):
        off = float(np.max(np.abs(kept - other[finite])))
        rms = float(np.sqrt(np.mean(np.square(np.abs(kept)))))
    return off / rms if rms else (float("inf") if off else 0.0)
