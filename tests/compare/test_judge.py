"""The gates, one after the other: what each stops, and what the verdict says about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tipcheck.compare import Comparison, Gate, Rules, Status, TensorVerdict, compare_arrays
from tipcheck.errors import UsageError

Array = npt.NDArray[Any]
Sides = dict[str, npt.ArrayLike]


def compared(expected: Sides, actual: Sides, **rules: Any) -> Comparison:
    return compare_arrays(expected, actual, Rules(**rules))


def verdict(expected: npt.ArrayLike, actual: npt.ArrayLike, **rules: Any) -> TensorVerdict:
    return compared({"y": expected}, {"y": actual}, **rules).tensors[0]


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


class TestStructure:
    def test_an_output_that_is_gone_fails(self) -> None:
        result = compared({"y": f32(1), "z": f32(2)}, {"y": f32(1)})
        assert (result.status, result.gate) == (Status.FAIL, Gate.STRUCTURE)
        assert result.tensors[1].reason == "missing on the actual side"
        assert (result.coverage.outputs, result.coverage.outputs_compared) == (2, 1)
        assert (result.coverage.elements, result.coverage.elements_compared) == (2, 1)

    def test_an_output_nobody_expected_fails(self) -> None:
        result = compared({"y": f32(1)}, {"y": f32(1), "z": f32(2)})
        assert result.status is Status.FAIL
        assert result.tensors[1].reason == "missing on the expected side"

    def test_a_renamed_output_fails_under_both_names(self) -> None:
        result = compared({"y": f32(1)}, {"renamed": f32(1)})
        assert [item.name for item in result.tensors] == ["y", "renamed"]
        assert result.coverage.elements_compared == 0

    @pytest.mark.parametrize("shape", [(4, 1), (1, 4), (2, 2), (5,), ()])
    def test_another_shape_fails_even_if_it_would_broadcast(self, shape: tuple[int, ...]) -> None:
        result = verdict(np.ones(4, np.float32), np.ones(shape, np.float32))
        assert result.gate is Gate.STRUCTURE
        assert result.reason == f"shape [4] became {list(shape)}"

    @pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "bool", "complex64"])
    def test_another_dtype_fails(self, dtype: str) -> None:
        result = verdict(f32(1, 0), np.array([1, 0], dtype))
        assert (result.status, result.gate) == (Status.FAIL, Gate.STRUCTURE)
        assert dtype in result.reason

    def test_byte_order_is_no_difference(self) -> None:
        values = f32(1, 2, -3)
        assert verdict(values, values.astype(">f4")).status is Status.PASS
        assert verdict(values.astype(">f4"), values * 2).status is Status.FAIL
        integers = np.array([1, 256], ">i4")
        assert verdict(integers, integers.astype("<i4")).status is Status.PASS

    def test_no_outputs_at_all_fail(self) -> None:
        result = compared({}, {})
        assert (result.status, result.gate) == (Status.FAIL, Gate.STRUCTURE)
        assert "nothing was compared" in result.reason

    @pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "U3"])
    def test_outputs_without_elements_alone_fail(self, dtype: str) -> None:
        result = compared({"y": np.zeros((0, 4), dtype)}, {"y": np.zeros((0, 4), dtype)})
        assert (result.status, result.gate) == (Status.FAIL, Gate.STRUCTURE)
        assert "nothing was compared" in result.reason

    def test_an_empty_output_beside_others_fails_too(self) -> None:
        both: Sides = {"boxes": np.zeros((0, 6), np.float32), "count": np.zeros(1, np.int32)}
        result = compared(both, both)
        assert (result.status, result.gate) == (Status.FAIL, Gate.STRUCTURE)
        assert result.reason.startswith("1 of 2 outputs have nothing to compare; boxes:")
        assert "nothing was compared in it" in result.tensors[0].reason
        assert (result.coverage.outputs, result.coverage.outputs_compared) == (2, 1)

    @pytest.mark.parametrize("dtype", ["O", [("a", "f4")], "V3"])
    def test_elements_that_cannot_be_compared_are_refused(self, dtype: Any) -> None:
        array = np.zeros(2, dtype)
        with pytest.raises(UsageError, match="output 'y'"):
            verdict(array, array)


class TestNonfinite:
    def test_nan_on_one_side_names_the_place(self) -> None:
        result = verdict(f32(1, 2), f32(1, np.nan))
        assert (result.status, result.gate) == (Status.FAIL, Gate.NONFINITE)
        assert result.worst is not None
        assert (result.worst.index, result.worst.expected, result.worst.actual) == ((1,), 2, "nan")
        assert result.measures is not None
        assert result.measures.actual.nan == 1

    def test_nan_on_both_sides_fails_unless_accepted(self) -> None:
        values = f32(1, np.nan)
        refused = verdict(values, values)
        assert (refused.status, refused.gate) == (Status.FAIL, Gate.NONFINITE)
        assert "--equal-nan" in refused.reason
        assert refused.worst is not None
        assert refused.worst.index == (1,)
        assert verdict(values, values, equal_nan=True).status is Status.PASS

    def test_infinities_of_one_sign_are_equal(self) -> None:
        values = f32(1, np.inf, -np.inf)
        assert verdict(values, values).status is Status.PASS

    @pytest.mark.parametrize("other", [-np.inf, np.nan, 3e38])
    def test_infinity_against_anything_else_fails_whatever_the_tolerance(
        self, other: float
    ) -> None:
        result = verdict(f32(1, np.inf), f32(1, other), rtol=1.0, atol=1e30)
        assert (result.status, result.gate) == (Status.FAIL, Gate.NONFINITE)

    def test_nothing_finite_is_noted(self) -> None:
        result = verdict(f32(np.inf), f32(np.inf))
        assert result.status is Status.PASS
        assert "no element is finite" in result.notes[0]


class TestExact:
    @pytest.mark.parametrize(
        ("dtype", "one", "other", "apart"),
        [
            ("int32", 2147483647, -1, 2147483648),
            ("int64", 9223372036854775807, -9223372036854775808, 2.0**64),
            ("uint8", 5, 6, 1),
            ("uint64", 0, 18446744073709551615, 2.0**64),
            ("int8", -128, 127, 255),
            ("bool", 0, 1, 1),
        ],
    )
    def test_integers_are_subtracted_without_wrapping(
        self, dtype: str, one: int, other: int, apart: float
    ) -> None:
        for pair in ((one, other), (other, one)):
            result = verdict(*(np.array([value], dtype) for value in pair), rtol=1e9, atol=1e30)
            assert (result.status, result.gate) == (Status.FAIL, Gate.EXACT)
            assert result.measures is not None
            assert result.measures.max_abs == apart

    def test_the_worst_integer_is_the_one_furthest_off(self) -> None:
        result = verdict(np.arange(6).reshape(2, 3), np.array([[0, 1, 3], [3, 9, 5]]))
        assert result.reason == "2 of 6 elements differ"
        assert result.worst is not None
        assert (result.worst.index, result.worst.expected, result.worst.actual) == ((1, 1), 4, 9)

    def test_booleans_are_shown_as_such(self) -> None:
        result = verdict(np.array([True]), np.array([False]))
        assert result.worst is not None
        assert (result.worst.expected, result.worst.actual) == ("True", "False")

    def test_text_is_compared_as_text(self) -> None:
        assert verdict(np.array(["ab"]), np.array(["ab"], "U9")).status is Status.PASS
        result = verdict(np.array(["ab", "c"]), np.array(["ab", "d"]))
        assert result.status is Status.FAIL
        assert result.worst is not None
        assert result.worst.expected == "c"

    def test_missing_dates_are_like_nan(self) -> None:
        dates = np.array(["2020-01-01", "NaT"], "datetime64[D]")
        assert verdict(dates, dates).status is Status.FAIL
        assert verdict(dates, dates, equal_nan=True).status is Status.PASS
        assert verdict(dates, dates[::-1].copy(), equal_nan=True).status is Status.FAIL


class TestNumbers:
    def test_the_verdict_carries_its_evidence(self) -> None:
        result = verdict(f32(1, 1000), f32(1, 1001))
        assert (result.status, result.gate) == (Status.FAIL, Gate.NUMBERS)
        assert result.reason.startswith("1 of 2 elements (50%) are beyond 0.0001")
        assert result.threshold is not None
        assert result.threshold.source == "default for float32"
        assert result.worst is not None
        assert result.worst.index == (1,)
        assert result.measures is not None
        assert result.measures.tolerance_used == pytest.approx(1 / 0.1001)
        assert result.measures.relative_floor == 1.0
        assert result.measures.max_relative == pytest.approx(1 / 1001)

    @pytest.mark.parametrize(
        ("rules", "source"),
        [
            ({}, "default for float32"),
            ({"rtol": 0.1}, "rtol: given, atol: default for float32"),
            ({"atol": 0.1}, "rtol: default for float32, atol: given"),
            ({"rtol": 0.1, "atol": 0.1}, "given"),
        ],
    )
    def test_says_where_the_tolerance_came_from(self, rules: dict[str, float], source: str) -> None:
        threshold = verdict(f32(1), f32(1), **rules).threshold
        assert threshold is not None
        assert threshold.source == source

    @pytest.mark.parametrize(
        ("rtol", "atol", "status"),
        [(0.25, 0.0, "PASS"), (0.0, 0.5, "PASS"), (0.2, 0.0, "FAIL"), (0.0, 0.4, "FAIL")],
    )
    def test_either_tolerance_alone_can_do(self, rtol: float, atol: float, status: str) -> None:
        assert verdict(f32(1, 2), f32(1.25, 2.5), rtol=rtol, atol=atol).status.value == status

    @pytest.mark.parametrize("tolerance", [-1e-9, np.nan, np.inf])
    @pytest.mark.parametrize("name", ["rtol", "atol"])
    def test_a_tolerance_that_is_none_is_refused(self, name: str, tolerance: float) -> None:
        with pytest.raises(UsageError, match=f"{name} is "):
            Rules(**{name: tolerance})  # type: ignore[arg-type]

    def test_tolerances_add_up(self) -> None:
        expected, actual = f32(0, 1, 2, 3), f32(0.15, 1.25, 2.5, 3.75)
        assert verdict(expected, actual, rtol=0.25, atol=0.0).status is Status.FAIL
        assert verdict(expected, actual, rtol=0.0, atol=0.3).status is Status.FAIL
        assert verdict(expected, actual, rtol=0.25, atol=0.3).status is Status.PASS

    def test_zero_tolerance_asks_for_the_same_bits(self) -> None:
        one = f32(1, 2)
        assert verdict(one, one.copy(), rtol=0, atol=0).status is Status.PASS
        result = verdict(one, np.nextafter(one, f32(9)), rtol=0, atol=0)
        assert result.status is Status.FAIL
        assert result.measures is not None
        assert result.measures.max_relative is None
        assert result.measures.tolerance_used == np.inf

    def test_negative_zero_is_zero(self) -> None:
        assert verdict(f32(0.0), f32(-0.0), rtol=0, atol=0).status is Status.PASS

    def test_same_mean_is_not_enough(self) -> None:
        assert verdict(f32(1, -1, 5, -5), f32(100, -100, -7, 7)).status is Status.FAIL

    def test_tolerance_larger_than_everything_is_noted(self) -> None:
        result = verdict(f32(1e-6, 2e-6), f32(9e-6, -5e-6))
        assert result.status is Status.PASS
        assert "all zeros would have passed" in result.notes[0]
        assert not verdict(f32(1e-6), f32(1e-6), atol=1e-9).notes

    def test_resolution_is_the_smallest_error_that_fails(self) -> None:
        expected = np.full(100, 0.01, np.float32)
        resolution = verdict(expected, expected).resolution
        assert resolution == pytest.approx(1e-4 + 1e-4 / 0.01)
        assert resolution is not None
        for share, status in ((0.99, Status.PASS), (1.01, Status.FAIL)):
            actual = np.full(100, 0.01 * (1 + resolution * share), np.float32)
            assert verdict(expected, actual).status is status

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
    def test_every_floating_dtype_has_a_default(self, dtype: str) -> None:
        one = np.ones(3, dtype)
        result = verdict(one, one)
        assert result.threshold is not None
        assert result.threshold.source == f"default for {dtype}"
        assert verdict(one, (one * 1.5).astype(dtype)).status is Status.FAIL

    def test_order_of_memory_does_not_matter(self) -> None:
        rows = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        wrong = rows.copy()
        wrong[1, 0, 2] += 1
        columns = np.asfortranarray(wrong)
        gaps = np.repeat(wrong, 2, axis=2)[:, :, ::2]
        for expected in (rows, np.asfortranarray(rows)):
            for actual in (wrong, columns, gaps, gaps[::-1][::-1]):
                worst = verdict(expected, actual).worst
                assert worst is not None
                assert (worst.index, worst.expected, worst.actual) == ((1, 0, 2), 14, 15)


class TestBfloat16:
    ONE, ONE_AND_A_BIT, TWO = 0x3F80, 0x3F81, 0x4000

    @pytest.mark.parametrize("names", [("y",), ("*",), ("y", "*")])
    def test_bits_are_decoded_when_the_caller_says_so(self, names: tuple[str, ...]) -> None:
        one = np.array([self.ONE, self.TWO], np.uint16)
        near = np.array([self.ONE_AND_A_BIT, self.TWO], np.uint16)
        result = verdict(one, near, bfloat16=frozenset(names))
        assert (result.dtype, result.status) == ("bfloat16", Status.PASS)
        assert result.measures is not None
        assert result.measures.max_abs == 2**-7
        assert result.measures.expected.maximum == 2.0

    def test_otherwise_they_are_integers(self) -> None:
        one, near = np.array([self.ONE], np.uint16), np.array([self.ONE_AND_A_BIT], np.uint16)
        assert verdict(one, near).gate is Gate.EXACT

    def test_two_raw_bytes_are_read_the_same_way(self) -> None:
        raw = np.array([self.ONE], np.uint16).view("V2")
        with pytest.raises(UsageError, match="--bf16 y"):
            verdict(raw, raw)
        result = verdict(raw, raw, bfloat16=frozenset("y"))
        assert result.measures is not None
        assert result.measures.expected.maximum == 1.0

    def test_other_types_cannot_be_bfloat16(self) -> None:
        with pytest.raises(UsageError, match="float32, which cannot hold bfloat16"):
            verdict(f32(1), f32(1), bfloat16=frozenset("y"))

    def test_nan_in_bfloat16_is_seen(self) -> None:
        result = verdict(
            np.array([0x7FC0], np.uint16),
            np.array([self.ONE], np.uint16),
            bfloat16=frozenset("y"),
        )
        assert result.gate is Gate.NONFINITE
