"""What a comparison says: a status that always carries the evidence that led to it.

The contract between ``compare``, which judges, and the rooms that collect verdicts
(``stage_ladder``, ``blame``) or show them (``report``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class Status(str, Enum):
    """The five things a comparison can end in."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    SUSPECT = "SUSPECT"
    """Between the two: more error than expected, less than certainly wrong."""
    CRASH = "CRASH"
    """One side died before it gave an answer."""
    UNSUPPORTED = "UNSUPPORTED"
    """One side cannot run on this machine."""


class Gate(str, Enum):
    """The tests a tensor goes through, in this order; the first that it fails decides."""

    STRUCTURE = "structure"
    """The same outputs, shapes and dtypes, and at least one element to compare."""
    NONFINITE = "nan and inf"
    """NaN, +inf and -inf stand at the same places."""
    EXACT = "exact"
    """Integers, booleans and text are equal, element by element."""
    NUMBERS = "numbers"
    """|actual - expected| <= atol + rtol * |expected|, element by element."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The tolerance a tensor was judged with, and where it came from.

    Attributes:
        rtol: share of the expected magnitude an element may be off by.
        atol: amount an element may be off by whatever its magnitude.
        source: ``default for float32``, ``--rtol``, ``--atol`` or another place a person can check.
    """

    rtol: float
    atol: float
    source: str


@dataclass(frozen=True, slots=True)
class Element:
    """One element that both sides have.

    Attributes:
        index: its position, one number per axis.
        expected: its value on the expected side; text where it is no finite real number, or wider
            than float64.
        actual: the same on the actual side.
    """

    index: tuple[int, ...]
    expected: int | float | str
    actual: int | float | str


@dataclass(frozen=True, slots=True)
class Side:
    """What one side of a tensor holds. Extremes are of the finite elements, None without any."""

    minimum: float | None
    maximum: float | None
    nan: int
    positive_inf: int
    negative_inf: int


@dataclass(frozen=True, slots=True)
class Measures:
    """How far two tensors are apart, over the elements that are finite on both sides.

    Attributes:
        compared: elements that are finite on both sides.
        mismatched: elements beyond the tolerance, or of different kind (NaN against a number).
        max_abs: largest absolute difference.
        max_abs_over_rms: the same divided by the root mean square of the expected side.
        max_relative: largest |actual - expected| / (|expected| + ``relative_floor``).
        relative_floor: the magnitude below which a relative error is not blown up any further:
            atol / rtol, which is where the absolute tolerance takes over.
        tolerance_used: largest share of its own tolerance that an element uses up; above 1 fails.
        sqnr_db: signal to noise, 20 log10 of rms(expected) / rms(difference); inf when equal.
        cosine: cosine similarity; None when a side is all zeros.
        expected: what the expected side holds.
        actual: what the actual side holds.
    """

    compared: int
    mismatched: int
    max_abs: float | None
    max_abs_over_rms: float | None
    max_relative: float | None
    relative_floor: float | None
    tolerance_used: float | None
    sqnr_db: float | None
    cosine: float | None
    expected: Side
    actual: Side


@dataclass(frozen=True, slots=True)
class TensorVerdict:
    """The verdict on one output.

    Attributes:
        name: the output's name.
        status: the verdict.
        gate: the gate that decided.
        reason: why, in one sentence.
        dtype: of the expected side (of the actual side where the output is missing there).
        shape: likewise.
        elements: how many elements the expected side has.
        threshold: the tolerance, for tensors that were judged by numbers.
        measures: None where the structure gate stopped the comparison.
        worst: the element furthest beyond (or nearest to) its tolerance, or the first that differs
            in kind; None when all elements are equal.
        resolution: smallest relative error that would have failed, for an element as large as the
            root mean square of the expected side; None where that is not defined.
        notes: what else a reader of the verdict has to know.
    """

    name: str
    status: Status
    gate: Gate
    reason: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    threshold: Threshold | None = None
    measures: Measures | None = None
    worst: Element | None = None
    resolution: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much was really compared. A comparison that covers less than everything never passes.

    Attributes:
        outputs: outputs that either side has.
        outputs_compared: those whose elements were looked at.
        elements: elements of the expected side, over all outputs.
        elements_compared: those that were looked at.
    """

    outputs: int
    outputs_compared: int
    elements: int
    elements_compared: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict on two sets of outputs.

    Attributes:
        expected: what the expected side is called, such as its file name.
        actual: likewise.
        status: FAIL if one tensor failed or nothing was compared.
        gate: the gate that decided.
        reason: why, in one sentence.
        coverage: how much was compared.
        tensors: one verdict per output, in the order of the expected side.
    """

    schema: ClassVar[str] = "tipcheck.comparison/1"

    expected: str
    actual: str
    status: Status
    gate: Gate
    reason: str
    coverage: Coverage
    tensors: tuple[TensorVerdict, ...]
