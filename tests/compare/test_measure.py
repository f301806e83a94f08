"""The blocked pass agrees with a plain numpy reference, on random and on awkward data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tipcheck.compare import Rules, Status, compare_arrays
from tipcheck.compare.measure import Tally, measure
from tipcheck.compare.tensors import BLOCK, MemoryTensor
from tipcheck.compare.verdict import Measures, TensorVerdict

Array = npt.NDArray[Any]
FLOATS: list[Any] = [np.float16, np.float32, np.float64]


def verdict_on(expected: Array, actual: Array, **rules: Any) -> TensorVerdict:
    return compare_arrays({"y": expected}, {"y": actual}, Rules(**rules)).tensors[0]


def measures_of(expected: Array, actual: Array, **rules: Any) -> Measures:
    measures = verdict_on(expected, actual, **rules).measures
    assert measures is not None
    return measures


def mismatches_by_numpy(
    expected: Array, actual: Array, rtol: float, atol: float, *, equal_nan: bool
) -> int:
    """The elementwise rule, written down once more, in float64 and without blocks."""
    wide, got = expected.astype(np.float64), actual.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(got - wide) <= atol + rtol * np.abs(wide)
    finite = np.isfinite(wide) & np.isfinite(got)
    same = np.where(finite, close, wide == got)
    if equal_nan:
        same |= np.isnan(wide) & np.isnan(got)
    return int(np.count_nonzero(~same))


def pairs(*, finite: bool) -> st.SearchStrategy[tuple[Array, Array]]:
    def two(dtype: Any, shape: tuple[int, ...]) -> st.SearchStrategy[tuple[Array, Array]]:
        width = np.dtype(dtype).itemsize * 8
        values = st.floats(width=width, allow_nan=not finite, allow_infinity=not finite)
        one = hnp.arrays(dtype, shape, elements=values)
        near = st.sampled_from([0.0, 1e-5, 1e-4, 1.0000001e-4, 1e-2, 1.0])

        def nudge(array: Array, by: float) -> tuple[Array, Array]:
            with np.errstate(all="ignore"):
                return array, (array + array * np.dtype(dtype).type(by)).astype(dtype)

        return st.one_of(st.tuples(one, one), st.builds(nudge, one, near))

    shapes = hnp.array_shapes(min_dims=0, max_dims=3, max_side=5)
    return st.tuples(st.sampled_from(FLOATS), shapes).flatmap(lambda both: two(*both))


tolerances = st.sampled_from([0.0, 1e-30, 1e-7, 1e-4, 1e-2, 1.0])


@settings(max_examples=400, deadline=None)
@given(pairs(finite=False), tolerances, tolerances, st.booleans())
@example((np.array(1.79769313e308), np.array(-9.97920155e291)), 0.0, 0.0, False)  # noqa: FBT003
def test_counts_the_same_mismatches_as_numpy(
    arrays: tuple[Array, Array], rtol: float, atol: float, equal_nan: bool
) -> None:
    expected, actual = arrays
    wanted = mismatches_by_numpy(expected, actual, rtol, atol, equal_nan=equal_nan)
    verdict = verdict_on(expected, actual, rtol=rtol, atol=atol, equal_nan=equal_nan)
    assert verdict.measures is not None
    assert verdict.measures.mismatched == wanted
    assert (verdict.status is Status.PASS) == (wanted == 0)


@settings(max_examples=300, deadline=None)
@given(pairs(finite=True))
def test_measures_agree_with_numpy(arrays: tuple[Array, Array]) -> None:
    expected, actual = arrays
    wide, got = expected.astype(np.longdouble), actual.astype(np.longdouble)
    if not np.isfinite(got.astype(expected.dtype)).all():
        return  # the nudge overflowed
    measures = measures_of(expected, actual)
    off = np.abs(got - wide)
    if off.max() > 1e308:
        return  # longdouble holds differences that float64 cannot
    assert measures.max_abs == pytest.approx(float(off.max()), rel=1e-6)
    assert measures.expected.minimum == float(wide.min())
    assert measures.expected.maximum == float(wide.max())
    assert measures.actual.minimum == float(got.min())
    assert measures.actual.maximum == float(got.max())
    noise, signal = np.square(off).sum(), np.square(wide).sum()
    if noise and signal:
        wanted = float(10 * np.log10(signal / noise))
        assert measures.sqnr_db == pytest.approx(wanted, abs=1e-3)
    else:
        assert measures.sqnr_db == (-math.inf if noise else math.inf)


@settings(max_examples=100, deadline=None)
@given(pairs(finite=True), st.integers(-20, 20))
def test_ratios_do_not_depend_on_the_scale(arrays: tuple[Array, Array], power: int) -> None:
    expected, actual = (array.astype(np.float64) for array in arrays)
    if not (np.isfinite(actual).all() and (np.abs(expected) > 1e-100).all()):
        return
    if max(np.abs(expected).max(), np.abs(actual).max()) > 1e100:
        return
    scale = 2.0**power  # exact
    plain = measures_of(expected, actual)
    scaled = measures_of(expected * scale, actual * scale)
    assert scaled.sqnr_db == pytest.approx(plain.sqnr_db, abs=1e-6)
    assert scaled.cosine == pytest.approx(plain.cosine, abs=1e-9)
    assert scaled.max_abs_over_rms == pytest.approx(plain.max_abs_over_rms, rel=1e-9)


@given(pairs(finite=False))
def test_nan_never_passes_unless_both_sides_have_it(arrays: tuple[Array, Array]) -> None:
    expected, actual = arrays
    if np.isnan(expected).any() or np.isnan(actual).any():
        verdict = verdict_on(expected, actual)
        assert verdict.status is Status.FAIL
    if (np.isnan(expected) != np.isnan(actual)).any():
        assert verdict_on(expected, actual, equal_nan=True).status is Status.FAIL


@given(pairs(finite=False))
def test_swapping_the_sides_swaps_what_they_hold(arrays: tuple[Array, Array]) -> None:
    one = measures_of(*arrays)
    other = measures_of(arrays[1], arrays[0])
    assert (one.expected, one.actual) == (other.actual, other.expected)
    assert one.compared == other.compared
    assert one.max_abs == pytest.approx(other.max_abs)


def long_pair(size: int, seed: int = 0) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    expected = random.standard_normal(size, dtype=np.float32)
    return expected, expected + np.float32(1e-6)


@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK, BLOCK + 1, 9 * BLOCK + 7])
def test_finds_one_bad_element_wherever_it_stands(size: int) -> None:
    expected, actual = long_pair(size)
    for place in (0, size // 2, size - 1):
        wrong = actual.copy()
        wrong[place] += 1
        verdict = verdict_on(expected, wrong)
        assert verdict.measures is not None
        assert verdict.measures.mismatched == 1
        assert verdict.worst is not None
        assert verdict.worst.index == (place,)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 3e38, 1e-30])
@pytest.mark.parametrize("threads", [1, 2])
def test_odd_elements_among_many_ordinary_ones(odd: float, threads: int) -> None:
    expected, actual = long_pair(33 * BLOCK)
    expected[::1000] = actual[::1000] = odd
    ordinary = [np.delete(side, np.s_[::1000]) for side in (expected, actual)]
    tallies = [
        measure(
            MemoryTensor(one),
            MemoryTensor(other),
            rtol=1e-4,
            atol=1e-4,
            decode=lambda block: block,
            threads=threads,
        )
        for one, other in ((expected, actual), tuple(ordinary))
    ]
    found, plain = tallies
    assert found.mismatched == plain.mismatched == 0
    assert found.worst_use == pytest.approx(plain.worst_use)
    assert found.max_abs == pytest.approx(plain.max_abs)
    assert float(found.noise) == pytest.approx(float(plain.noise), rel=1e-5)
    counts = {"nan": 0, "positive_inf": 0, "negative_inf": 0}
    name = {math.inf: "positive_inf", -math.inf: "negative_inf"}.get(odd)
    if math.isnan(odd):
        name = "nan"
    if name:
        counts[name] = math.ceil(33 * BLOCK / 1000)
    assert {key: getattr(found.expected, key) for key in counts} == counts


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_find_what_one_thread_finds(threads: int) -> None:
    expected, actual = long_pair(40 * BLOCK + 5)
    actual[27 * BLOCK + 3] = np.nan
    actual[4 * BLOCK] += 2

    def decode(block: Array) -> Array:
        return block

    def tally(count: int) -> Tally:
        one, other = MemoryTensor(expected), MemoryTensor(actual)
        return measure(one, other, rtol=1e-4, atol=1e-4, decode=decode, threads=count)

    alone, together = tally(1), tally(threads)
    assert together.nonfinite is not None
    assert together.nonfinite.at == 27 * BLOCK + 3
    assert together.worst is not None
    assert together.worst.at == 4 * BLOCK
    assert together.mismatched == alone.mismatched == 1
    assert float(together.signal) == pytest.approx(float(alone.signal))


def test_sums_stay_exact_over_many_elements() -> None:
    ones = np.ones(16 * 1024 * 1024, np.float32)
    measures = measures_of(ones, ones + np.float32(0.5))
    assert measures.sqnr_db == pytest.approx(20 * math.log10(2), abs=1e-9)
    assert measures.max_abs_over_rms == pytest.approx(0.5, rel=1e-12)


def test_cosine_sees_what_is_far_below_single_precision() -> None:
    random = np.random.default_rng(1)
    expected = random.standard_normal(100_000)
    noise = random.standard_normal(100_000)
    measures = measures_of(expected, expected + 1e-6 * noise)
    assert measures.cosine is not None
    assert 1 - measures.cosine == pytest.approx(0.5e-12, rel=0.05)


def test_squares_that_overflow_or_vanish_are_still_summed() -> None:
    for dtype, scale in ((np.float32, 1e30), (np.float32, 1e-30), (np.float64, 1e200)):
        expected = np.array([scale, 2 * scale, -2 * scale], dtype)
        measures = measures_of(expected, np.multiply(expected, 1.125, dtype=dtype))
        assert measures.sqnr_db == pytest.approx(20 * math.log10(8), abs=1e-3)
        assert measures.cosine == pytest.approx(1.0)


def test_difference_that_overflows_its_type_is_not_lost() -> None:
    top = np.finfo(np.float32).max
    verdict = verdict_on(np.array([top]), np.array([-top]))
    assert verdict.status is Status.FAIL
    assert verdict.measures is not None
    assert verdict.measures.max_abs == pytest.approx(2 * float(top))


def test_complex_numbers_are_judged_by_the_modulus_of_the_difference() -> None:
    expected = np.array([3 + 4j, 0j], np.complex64)
    assert verdict_on(expected, expected + np.complex64(1e-4j)).status is Status.PASS
    failed = verdict_on(expected, expected * np.complex64(1j))
    assert failed.status is Status.FAIL
    assert failed.measures is not None
    assert failed.measures.max_abs == pytest.approx(abs((3 + 4j) * (1j - 1)))


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (complex(math.inf, 1), complex(math.inf, 1), True),
        (complex(math.inf, 1), complex(-math.inf, 1), False),
        (complex(math.inf, 1), complex(math.inf, 2), False),
        (complex(1, math.inf), complex(1, 1), False),
    ],
)
def test_complex_infinities_are_compared_part_by_part(
    expected: complex, actual: complex, same: bool
) -> None:
    verdict = verdict_on(np.array([expected]), np.array([actual]))
    assert (verdict.status is Status.PASS) == same


def test_longdouble_is_judged_in_its_own_precision() -> None:
    one = np.ones(3, np.longdouble)
    assert verdict_on(one, one + np.longdouble(1e-8)).status is Status.PASS
    assert verdict_on(one, one + np.longdouble(1e-3)).status is Status.FAIL
