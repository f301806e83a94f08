"""Turns the raw tally of one pass into the figures a verdict carries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.compare.verdict import Element, Measures, Side

if TYPE_CHECKING:
    from tipcheck.compare.measure import Found, SideTally, Tally
    from tipcheck.compare.tensors import Tensor
    from tipcheck.compare.verdict import Threshold


@np.errstate(all="ignore")  # what a longdouble cannot hold ends as None
def measures_of(tally: Tally, mismatched: int, threshold: Threshold | None) -> Measures:
    """Return every measure; those that are not defined for this tensor are None."""
    used = tally.worst_use if tally.compared and threshold else None
    floor = threshold.atol / threshold.rtol if threshold and threshold.rtol else None
    relative = None if used is None or floor is None or not threshold else used * threshold.rtol
    numbers = tally.compared > 0 and bool(np.isfinite(tally.expected.minimum))
    rms = _rms(tally)
    return Measures(
        compared=tally.compared,
        mismatched=mismatched,
        max_abs=float(tally.max_abs) if numbers else None,
        max_abs_over_rms=_float(tally.max_abs / rms) if numbers and rms else None,
        max_relative=relative,
        relative_floor=floor,
        tolerance_used=used,
        sqnr_db=_sqnr(tally) if numbers else None,
        cosine=_cosine(tally) if numbers else None,
        expected=_side(tally.expected),
        actual=_side(tally.actual),
    )


def element(found: Found | None, tensor: Tensor) -> Element | None:
    """Return an element with its index per axis and values that JSON can hold."""
    if found is None:
        return None
    return Element(
        index=_index(found.at, tensor),
        expected=_plain(found.expected),
        actual=_plain(found.actual),
    )


def _index(at: int, tensor: Tensor) -> tuple[int, ...]:
    """As ``numpy.unravel_index``, for more axes than numpy 1 can have."""
    fastest_first = tensor.shape if tensor.order == "F" else tensor.shape[::-1]
    index = []
    for length in fastest_first:
        at, place = divmod(at, length)
        index.append(place)
    return tuple(index if tensor.order == "F" else index[::-1])


@np.errstate(all="ignore")
def resolution(tally: Tally, threshold: Threshold) -> float | None:
    """Return the smallest relative error that fails for an element as large as the rms."""
    rms = _rms(tally)
    return _float(threshold.rtol + threshold.atol / rms) if rms else None


def was_blind(tally: Tally, threshold: Threshold) -> bool:
    """Whether the absolute tolerance is as large as everything it was to protect."""
    largest = max(-tally.expected.minimum, tally.expected.maximum)
    return bool(0.0 < largest <= threshold.atol)


def _rms(tally: Tally) -> np.longdouble:
    """Root mean square of the expected side; wide, since its square may not fit a float."""
    rms: np.longdouble = np.sqrt(np.longdouble(tally.signal) / max(tally.compared, 1))
    return rms


def _sqnr(tally: Tally) -> float | None:
    if not tally.max_abs:
        return math.inf
    if not tally.signal:
        return -math.inf
    return _float(10.0 * np.log10(np.longdouble(tally.signal) / np.longdouble(tally.noise)))


def _cosine(tally: Tally) -> float | None:
    """From the three sums of squares: |a-b|^2 = |a|^2 + |b|^2 - 2 a.b."""
    signal, echo = np.sqrt(np.longdouble(tally.signal)), np.sqrt(np.longdouble(tally.echo))
    if not signal or not echo:
        return None
    apart = _float((tally.noise - (echo - signal) ** 2) / (2 * signal * echo))
    return None if apart is None else min(1.0, max(-1.0, 1.0 - apart))


def _float(number: Any) -> float | None:  # noqa: ANN401 - a float or a wider numpy scalar
    """Return what fits a float; None for what a longdouble could not hold on the way."""
    return float(number) if np.isfinite(number) else None


def _side(side: SideTally) -> Side:
    return Side(
        minimum=float(side.minimum) if np.isfinite(side.minimum) else None,
        maximum=float(side.maximum) if np.isfinite(side.maximum) else None,
        nan=side.nan,
        positive_inf=side.positive_inf,
        negative_inf=side.negative_inf,
    )


def _plain(value: object) -> int | float | str:
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)
