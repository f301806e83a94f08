"""Decisions: whether the largest score of a row is still the largest.

Users do not see the fourth decimal of a score, they see another class. A flip between two scores
that were as good as equal says nothing, so flips are counted twice: all of them, and those where
the first had led by more than the noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tipcheck.stage_ladder.rung import Flips

if TYPE_CHECKING:
    from tipcheck.stage_ladder.answers import Array

_FEWEST = 3
_FIRST = 5


def looks_like_scores(array: Array) -> bool:
    """Return whether rows of an output can be scores of classes: two axes, several columns."""
    if array.ndim != 2 or array.shape[1] < _FEWEST or array.dtype.kind != "f":
        return False
    if array.shape[1] >= 2 * _FIRST:
        return True
    sums = array.astype(np.float64).sum(axis=1)
    return bool(np.allclose(sums, 1.0, atol=1e-3) and (array >= 0).all())


def count_flips(expected: Array, actual: Array, noise: float) -> Flips | None:
    """Count the decisions that changed; None for outputs that do not look like scores.

    Args:
        expected: scores of the reference.
        actual: scores of the stage.
        noise: how far, in units of the rms, a score may be off.
    """
    with np.errstate(all="ignore"):  # scores may be infinite
        return _flips(expected, actual, noise)


def _flips(expected: Array, actual: Array, noise: float) -> Flips | None:
    if expected.shape != actual.shape or not looks_like_scores(expected):
        return None
    one, other = expected.astype(np.float64), actual.astype(np.float64)
    flipped = one.argmax(axis=1) != other.argmax(axis=1)
    ordered = np.sort(one, axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    clear = margin > 2 * noise * float(np.sqrt(np.mean(np.square(one))))
    top = 0
    if one.shape[1] >= 2 * _FIRST:
        fronts = [set(map(tuple, _front(side))) for side in (one, other)]
        top = len(fronts[0] - fronts[1])
    return Flips(
        decisions=len(one),
        flipped=int(np.count_nonzero(flipped)),
        flipped_clearly=int(np.count_nonzero(flipped & clear)),
        top5=top,
    )


def _front(scores: Array) -> Array:
    """Return, per row, its number and the columns of its five largest scores, sorted."""
    first = np.sort(np.argpartition(scores, -_FIRST, axis=1)[:, -_FIRST:], axis=1)
    return np.concatenate([np.arange(len(scores))[:, None], first], axis=1)


def together(flips: list[Flips]) -> Flips | None:
    """Add up the flips of several outputs."""
    if not flips:
        return None
    return Flips(
        sum(item.decisions for item in flips),
        sum(item.flipped for item in flips),
        sum(item.flipped_clearly for item in flips),
        sum(item.top5 for item in flips),
    )
