"""One pass over two tensors whose elements have to be equal: integers, booleans, text, dates.

Differences of integers are taken without wrapping around, whatever their width: 2147483647 against
-1 is 2147483648 apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tipcheck.compare.measure import Found, SideTally, Tally
from tipcheck.compare.tensors import in_step

if TYPE_CHECKING:
    from tipcheck.compare.tensors import Array, Tensor


def count_differences(expected: Tensor, actual: Tensor) -> Tally:
    """Walk two tensors of one shape and kind; the worst element is the one furthest apart."""
    tally = Tally()
    for start, one, other in in_step(expected, actual):
        kind = one.dtype.kind
        if kind in "biu":
            _take_integers(tally, start, one, other)
        else:
            _take_words(tally, start, one, other)
        tally.compared += one.size
    return tally


def _take_integers(tally: Tally, start: int, one: Array, other: Array) -> None:
    plain = (one, other)  # as shown to people: True, not 1
    if one.dtype.kind == "b":
        one, other = one.view(np.uint8), other.view(np.uint8)
    unequal = one != other
    count = int(np.count_nonzero(unequal))
    wide, wide_other = one.astype(np.float64), other.astype(np.float64)
    tally.signal += float(np.dot(wide, wide))
    tally.echo += float(np.dot(wide_other, wide_other))
    for side, values in ((tally.expected, wide), (tally.actual, wide_other)):
        side.add(SideTally(float(values.min()), float(values.max())))
    if not count:
        return
    tally.mismatched += count
    unsigned = np.dtype(f"u{one.dtype.itemsize}")
    apart = np.maximum(one, other).astype(unsigned) - np.minimum(one, other).astype(unsigned)
    off = apart.astype(np.float64)
    tally.noise += float(np.dot(off, off))
    at = int(apart.argmax())
    if float(off[at]) > tally.max_abs:
        tally.max_abs = float(off[at])
        tally.worst = Found(start + at, *(side[at].item() for side in plain))


def _take_words(tally: Tally, start: int, one: Array, other: Array) -> None:
    missing = np.zeros(one.shape, dtype=bool)
    if one.dtype.kind in "Mm":
        missing = np.isnat(one) & np.isnat(other)
        tally.both_nan += int(np.count_nonzero(missing))
    unequal = (one != other) & ~missing
    count = int(np.count_nonzero(unequal))
    tally.mismatched += count
    if count and tally.worst is None:
        at = int(unequal.argmax())
        tally.worst = Found(start + at, str(one[at]), str(other[at]))
