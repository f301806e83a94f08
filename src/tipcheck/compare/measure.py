"""One pass over two floating tensors that yields every measure, with memory for a few blocks only.

Each block takes the fast path: a dozen vector operations in the tensors' own precision, with sums
carried on in float64. A block that is out of the ordinary (NaN, infinity, squares that would
overflow or vanish, an element too close to its tolerance to be judged in single precision) is done
again on the exact path, in double precision or better. Which path a block took never shows in a
count; measures differ by less than one part in a million.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.compare.tensors import BLOCK, MemoryTensor, in_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from tipcheck.compare.tensors import Array, Tensor

    Place = Callable[[int], int]
    """From the position inside a block to the flat index in the whole tensor."""

THREADED_FROM = 32 * BLOCK
"""Below this many elements a second thread costs more than it saves."""

_ROW = 8192
"""So many elements BLAS multiplies without help."""

_SLACK = 1e-6
"""Relative width of the zone around a tolerance in which single precision may not decide."""
_BIG, _SMALL = 1e16, 1e-18
"""Between these magnitudes the squares of a block, and their sum, are safe in float32."""
_TINY, _HUGE = 1e-140, 1e140
"""The same for float64."""
_FAST = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(slots=True)
class SideTally:
    """Running extremes and counts of one side."""

    minimum: Any = math.inf
    maximum: Any = -math.inf
    nan: int = 0
    positive_inf: int = 0
    negative_inf: int = 0

    def add(self, other: SideTally) -> None:
        """Take in what another piece of the same side held."""
        self.minimum = min(self.minimum, other.minimum)
        self.maximum = max(self.maximum, other.maximum)
        self.nan += other.nan
        self.positive_inf += other.positive_inf
        self.negative_inf += other.negative_inf


@dataclass(frozen=True, slots=True)
class Found:
    """One element worth showing: its flat index in the order of the walk, and both values."""

    at: int
    expected: Any
    actual: Any


@dataclass(slots=True)
class Tally:
    """What one pass has found so far.

    ``Any`` stands for a float, or for a numpy number wider than that where a float would overflow:
    the difference of two huge values, or the square of one.
    """

    compared: int = 0
    mismatched: int = 0
    max_abs: Any = 0.0
    worst_use: float = -1.0
    worst: Found | None = None
    nonfinite: Found | None = None
    differing_nonfinite: int = 0
    first_nan: Found | None = None
    both_nan: int = 0
    noise: Any = 0.0
    signal: Any = 0.0
    echo: Any = 0.0
    expected: SideTally = field(default_factory=SideTally)
    actual: SideTally = field(default_factory=SideTally)

    def add(self, other: Tally) -> None:
        """Take in the tally of a later piece of the same tensors."""
        self.compared += other.compared
        self.mismatched += other.mismatched
        self.max_abs = max(self.max_abs, other.max_abs)
        if other.worst_use > self.worst_use:
            self.worst_use, self.worst = other.worst_use, other.worst
        self.nonfinite = self.nonfinite or other.nonfinite
        self.differing_nonfinite += other.differing_nonfinite
        self.first_nan = self.first_nan or other.first_nan
        self.both_nan += other.both_nan
        self.noise += other.noise
        self.signal += other.signal
        self.echo += other.echo
        self.expected.add(other.expected)
        self.actual.add(other.actual)


class Walker:
    """Judges blocks one after the other, reusing its scratch space. One per thread."""

    def __init__(self, dtype: np.dtype[Any], rtol: float, atol: float) -> None:
        self.tally = Tally()
        self._dtype = dtype
        self._rtol = rtol
        self._atol = atol
        self._ordinary = max(rtol, atol) < _BIG
        # Type objects, not Python floats: numpy 1 and 2 promote those differently.
        self._rtol_here = dtype.type(min(rtol, _BIG))
        self._atol_here = dtype.type(min(atol, _BIG))
        self._difference = np.empty(BLOCK, dtype)
        self._allowed = np.empty(BLOCK, dtype)

    def take(self, start: int, expected: Array, actual: Array) -> None:
        """Judge one block whose first element has the flat index ``start``."""

        def place(at: int) -> int:
            return start + at

        if expected.dtype not in _FAST or not self._ordinary:
            self._exact(expected, actual, place)
        elif not self._fast(expected, actual, place):
            self._split(start, expected, actual)

    def _split(self, start: int, expected: Array, actual: Array) -> None:
        """Judge the ordinary elements of a block the fast way, and the others exactly.

        Masks full of -inf or of the lowest float are common; they must not slow down the rest.
        """
        odd = ~((np.abs(expected) < _BIG) & (np.abs(actual) < _BIG))
        for chosen in (np.flatnonzero(~odd), np.flatnonzero(odd)):
            if not chosen.size:
                continue
            one, other = expected[chosen], actual[chosen]

            def place(at: int, chosen: Array = chosen) -> int:
                return start + int(chosen[at])

            if not self._fast(one, other, place):
                self._exact(one, other, place)

    def _fast(self, expected: Array, actual: Array, place: Place) -> bool:
        """Judge a block of ordinary numbers; return False, with nothing counted, for others."""
        tally = self.tally
        difference = self._difference[: expected.size]
        allowed = self._allowed[: expected.size]
        np.subtract(actual, expected, out=difference)
        np.abs(difference, out=difference)
        top = float(difference.max())  # NaN and inf travel through
        low, high = float(expected.min()), float(expected.max())
        low_actual, high_actual = float(actual.min()), float(actual.max())
        tops = (top, max(-low, high), max(-low_actual, high_actual))
        if not all(size == 0.0 or _SMALL < size < _BIG for size in tops):
            return False
        np.abs(expected, out=allowed)
        np.multiply(allowed, self._rtol_here, out=allowed)
        np.add(allowed, self._atol_here, out=allowed)
        if self._atol < _SMALL and float(allowed.min()) < _SMALL:
            return False
        tally.noise += _energy(difference)
        tally.signal += _energy(expected)
        tally.echo += _energy(actual)
        if self._dtype.itemsize == 8:
            tally.mismatched += int(np.count_nonzero(difference > allowed))
        np.divide(difference, allowed, out=allowed)
        use = float(allowed.max())
        if self._dtype.itemsize < 8 and use > 1.0 - _SLACK:
            tally.mismatched += self._count_over(allowed, expected, actual)
        tally.compared += expected.size
        if use > tally.worst_use:
            self._remember(int(allowed.argmax()), expected, actual, place)
        if top > tally.max_abs:
            at = int(difference.argmax())
            tally.max_abs = abs(float(actual[at]) - float(expected[at]))
        tally.expected.add(SideTally(low, high))
        tally.actual.add(SideTally(low_actual, high_actual))
        return True

    def _remember(self, at: int, expected: Array, actual: Array, place: Place) -> None:
        """Keep an element as the worst so far, its share of the tolerance in double precision."""
        one, other = expected[at].item(), actual[at].item()
        off, allowed = _apart(np.array([one]), np.array([other]), self._rtol, self._atol)
        self.tally.worst_use = float(_used(off, allowed)[0])
        self.tally.worst = Found(place(at), one, other)

    def _count_over(self, use: Array, expected: Array, actual: Array) -> int:
        """Count the elements beyond tolerance; those near the line are judged in double."""
        clear = int(np.count_nonzero(use > 1.0 + _SLACK))
        near = np.flatnonzero((use > 1.0 - _SLACK) & (use <= 1.0 + _SLACK))
        wanted = expected[near].astype(np.float64)
        off = np.abs(actual[near].astype(np.float64) - wanted)
        return clear + int(np.count_nonzero(off > self._atol + self._rtol * np.abs(wanted)))

    def _exact(self, expected: Array, actual: Array, place: Place) -> None:
        """Judge any block, in double precision or better, with NaN and infinity set apart."""
        tally = self.tally
        one, other = _widen(expected), _widen(actual)
        finite = np.isfinite(one) & np.isfinite(other)
        if not finite.all():
            self._set_apart(one, other, finite, place)
        places = np.flatnonzero(finite)
        if not places.size:
            return
        one, other = one[places], other[places]
        off, allowed = _apart(one, other, self._rtol, self._atol)
        # A difference too large for any format is beyond every tolerance.
        tally.mismatched += int(np.count_nonzero(~((off <= allowed) & np.isfinite(off))))
        tally.compared += places.size
        use = _used(off, allowed)
        at = int(use.argmax())
        if float(use[at]) > tally.worst_use:
            self._remember(int(places[at]), expected, actual, place)
        tally.max_abs = max(tally.max_abs, off.max())
        tally.noise += _sum_of_squares(off)
        for side, values in ((tally.expected, one), (tally.actual, other)):
            real = np.abs(values) if values.dtype.kind == "c" else values
            side.add(SideTally(real.min(), real.max()))
        tally.signal += _sum_of_squares(np.abs(one))
        tally.echo += _sum_of_squares(np.abs(other))

    def _set_apart(self, one: Array, other: Array, finite: Array, place: Place) -> None:
        """Count NaN and infinity, and find where the two sides differ in them."""
        tally = self.tally
        _count_nonfinite(tally.expected, one)
        _count_nonfinite(tally.actual, other)
        differs = ~finite & ~_same_nonfinite(one, other, self._rtol, self._atol)
        if differs.any():
            first = int(differs.argmax())
            found = Found(place(first), one[first].item(), other[first].item())
            tally.nonfinite = tally.nonfinite or found
            tally.differing_nonfinite += int(np.count_nonzero(differs))
        both_nan = np.isnan(one) & np.isnan(other)
        if both_nan.any():
            first = int(both_nan.argmax())
            found = Found(place(first), one[first].item(), other[first].item())
            tally.first_nan = tally.first_nan or found
            tally.both_nan += int(np.count_nonzero(both_nan))


def measure(
    expected: Tensor,
    actual: Tensor,
    *,
    rtol: float,
    atol: float,
    decode: Callable[[Array], Array],
    threads: int | None = None,
) -> Tally:
    """Walk two floating tensors of one shape and return what was found.

    Args:
        expected: the reference.
        actual: what is judged.
        rtol: relative tolerance.
        atol: absolute tolerance.
        decode: turns a block as stored into float32, float64 or complex numbers.
        threads: how many to use on arrays in memory; by default one per core of this process.
    """
    probe = decode(np.zeros(0, expected.dtype))

    def walk(one: Tensor, other: Tensor, offset: int = 0) -> Tally:
        walker = Walker(_working_dtype(probe.dtype), rtol, atol)
        with np.errstate(all="ignore"):
            for start, block, against in in_step(one, other):
                walker.take(offset + start, decode(block), decode(against))
        return walker.tally

    size = math.prod(expected.shape)
    workers = threads or len(os.sched_getaffinity(0))
    flats = _both_flat(expected, actual)
    if flats is None or workers < 2 or size < THREADED_FROM:
        return walk(expected, actual)
    share = math.ceil(size / workers / BLOCK) * BLOCK
    with ThreadPoolExecutor(workers) as pool:
        tallies = pool.map(
            lambda at: walk(
                MemoryTensor(flats[0][at : at + share]), MemoryTensor(flats[1][at : at + share]), at
            ),
            range(0, size, share),
        )
        total = Tally()
        for tally in tallies:
            total.add(tally)
    return total


def _both_flat(expected: Tensor, actual: Tensor) -> tuple[Array, Array] | None:
    if not (isinstance(expected, MemoryTensor) and isinstance(actual, MemoryTensor)):
        return None
    if expected.order != actual.order:
        return None
    one, other = expected.flat(), actual.flat()
    return None if one is None or other is None else (one, other)


def _working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)


def _energy(values: Array) -> float:
    """Return the sum of squares of ordinary numbers, carried on in float64.

    In rows, because BLAS shares longer products among threads, which then wait for each other: on a
    busy machine that takes ten times as long as everything else that is done with a block.
    """
    whole = values.size - values.size % _ROW
    rows = values[:whole].reshape(-1, 1, _ROW)
    rest = values[whole:]
    products = np.matmul(rows, rows.transpose(0, 2, 1))
    return float(products.sum(dtype=np.float64)) + float(np.dot(rest, rest))


def _sum_of_squares(magnitudes: Array) -> Any:  # noqa: ANN401 - float or a wider numpy scalar
    top = float(magnitudes.max())
    if top == 0.0 or _TINY < top < _HUGE:
        return np.square(magnitudes).sum()
    # Squares of any float64 fit a longdouble wherever that is wider.
    return np.square(magnitudes.astype(np.longdouble)).sum()


def _apart(one: Array, other: Array, rtol: float, atol: float) -> tuple[Array, Array]:
    """Return how far elements are apart and how far they may be, both without overflow."""
    off, allowed = np.abs(other - one), atol + rtol * np.abs(one)
    if np.isfinite(off).all() and np.isfinite(allowed).all():
        return off, allowed
    wide = np.result_type(one.dtype, np.longdouble)
    one, other = one.astype(wide), other.astype(wide)
    return np.abs(other - one), atol + rtol * np.abs(one)


def _used(off: Array, allowed: Array) -> Array:
    """Return the share of its tolerance that every element uses up."""
    share: Array = np.where(np.isfinite(off), np.where(off == 0, 0.0, off / allowed), math.inf)
    return share


def _widen(values: Array) -> Array:
    if values.dtype.kind == "c":
        return values.astype(np.result_type(values.dtype, np.complex128))
    return values.astype(np.result_type(values.dtype, np.float64))


def _same_nonfinite(one: Array, other: Array, rtol: float, atol: float) -> Array:
    """Where both hold the same infinity or both NaN; of complex numbers, in both parts.

    A complex number can be infinite in one part and ordinary in the other, which then has to be
    within tolerance.
    """
    if one.dtype.kind != "c":
        same: Array = (np.isnan(one) & np.isnan(other)) | (one == other)
        return same
    return _same_part(one.real, other.real, rtol, atol) & _same_part(
        one.imag, other.imag, rtol, atol
    )


def _same_part(one: Array, other: Array, rtol: float, atol: float) -> Array:
    both_finite = np.isfinite(one) & np.isfinite(other)
    close = both_finite & (np.abs(other - one) <= atol + rtol * np.abs(one))
    same: Array = close | (np.isnan(one) & np.isnan(other)) | (one == other)
    return same


def _count_nonfinite(side: SideTally, values: Array) -> None:
    parts = (values.real, values.imag) if values.dtype.kind == "c" else (values,)
    side.nan += int(np.count_nonzero(np.isnan(values)))
    for part in parts:
        side.positive_inf += int(np.count_nonzero(part == np.inf))
        side.negative_inf += int(np.count_nonzero(part == -np.inf))
