"""The gates: from two tensors, or two sets of them, to a verdict. Fails closed.

Whatever keeps elements from being compared (an output that is missing, another shape, another
dtype, nothing there) is a failure, never a pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcheck.compare.evidence import element, measures_of, resolution, was_blind
from tipcheck.compare.exact import count_differences
from tipcheck.compare.formats import ALL_OUTPUTS, EXACT_KINDS, Format
from tipcheck.compare.measure import measure
from tipcheck.compare.tolerance import threshold_for
from tipcheck.compare.verdict import Comparison, Coverage, Gate, Status, TensorVerdict
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tipcheck.compare.measure import Tally
    from tipcheck.compare.tensors import Tensor
    from tipcheck.compare.verdict import Threshold


@dataclass(frozen=True, slots=True)
class Rules:
    """How to judge: what the caller says, where it differs from the defaults.

    Attributes:
        rtol: relative tolerance for floating outputs; None takes the default of the dtype.
        atol: absolute tolerance, likewise.
        equal_nan: NaN in the same place on both sides counts as equal.
        bfloat16: names of outputs that hold bfloat16 bits as uint16; ``*`` means all that can.
    """

    rtol: float | None = None
    atol: float | None = None
    equal_nan: bool = False
    bfloat16: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse tolerances that no element could be judged by: NaN would let everything pass."""
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            if value is not None and not 0.0 <= value < math.inf:
                hint = "give a number of 0 or more, such as 1e-4"
                raise UsageError(f"{name} is {value:g}", hint=hint)


def judge_outputs(
    expected: Mapping[str, Tensor],
    actual: Mapping[str, Tensor],
    rules: Rules,
    *,
    expected_name: str = "expected",
    actual_name: str = "actual",
) -> Comparison:
    """Judge two sets of outputs; their order does not matter, their names do."""
    names = [*expected, *(name for name in actual if name not in expected)]
    for name in rules.bfloat16.difference(names, [ALL_OUTPUTS]):
        raise UsageError(
            f"there is no output {name!r} to read as bfloat16",
            hint=f"the outputs are {', '.join(names) or 'none'}",
        )
    verdicts = tuple(judge(name, expected.get(name), actual.get(name), rules) for name in names)
    looked_at = [verdict for verdict in verdicts if verdict.measures]
    coverage = Coverage(
        outputs=len(verdicts),
        outputs_compared=len(looked_at),
        elements=sum(math.prod(tensor.shape) for tensor in expected.values()),
        elements_compared=sum(verdict.elements for verdict in looked_at),
    )
    status, gate, reason = _overall(verdicts, coverage)
    return Comparison(expected_name, actual_name, status, gate, reason, coverage, verdicts)


def _overall(verdicts: tuple[TensorVerdict, ...], coverage: Coverage) -> tuple[Status, Gate, str]:
    failed = [verdict for verdict in verdicts if verdict.status is not Status.PASS]
    if failed:
        first = failed[0]
        what = "differ" if any(map(_differs, failed)) else "have nothing to compare"
        reason = f"{len(failed)} of {coverage.outputs} outputs {what}; {first.name}: {first.reason}"
        return Status.FAIL, first.gate, reason
    if not verdicts:
        return Status.FAIL, Gate.STRUCTURE, "there are no outputs: nothing was compared"
    last = max((verdict.gate for verdict in verdicts), key=list(Gate).index)
    outputs = _counted(coverage.outputs, "output")
    elements = _counted(coverage.elements_compared, "element")
    return Status.PASS, last, f"all equal within tolerance: {outputs}, {elements}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _differs(verdict: TensorVerdict) -> bool:
    """Whether it is more than an output without elements on either side."""
    return verdict.reason != EMPTY


def judge(name: str, expected: Tensor | None, actual: Tensor | None, rules: Rules) -> TensorVerdict:
    """Judge one output; a side that does not have it is None."""
    if expected is None or actual is None:
        there, side = (actual, "expected") if expected is None else (expected, "actual")
        return _structure(name, there, rules, f"missing on the {side} side")
    one, other = (Format.of(name, tensor.dtype, rules.bfloat16) for tensor in (expected, actual))
    if not one.same_as(other):
        return _structure(name, expected, rules, f"dtype {one.name} became {other.name}")
    if expected.shape != actual.shape:
        was, now = list(expected.shape), list(actual.shape)
        return _structure(name, expected, rules, f"shape {was} became {now}")
    if not math.prod(expected.shape):
        return _structure(name, expected, rules, EMPTY)
    if one.kind in EXACT_KINDS:
        return _judge_exact(name, one, expected, actual, rules)
    return _judge_numbers(name, one, expected, actual, rules)


def _structure(name: str, tensor: Tensor | None, rules: Rules, reason: str) -> TensorVerdict:
    assert tensor is not None  # noqa: S101 - a name comes from one of the sides
    return TensorVerdict(
        name=name,
        status=Status.FAIL,
        gate=Gate.STRUCTURE,
        reason=reason,
        dtype=Format.of(name, tensor.dtype, rules.bfloat16).name,
        shape=tensor.shape,
        elements=math.prod(tensor.shape),
    )


def _judge_exact(
    name: str, form: Format, expected: Tensor, actual: Tensor, rules: Rules
) -> TensorVerdict:
    tally = count_differences(expected, actual)
    missing = 0 if rules.equal_nan else tally.both_nan
    size = math.prod(expected.shape)
    wrong = tally.mismatched + missing
    status = Status.FAIL if wrong else Status.PASS
    reason = f"{wrong:,} of {size:,} elements differ" if wrong else "all elements are equal"
    return TensorVerdict(
        name=name,
        status=status,
        gate=Gate.EXACT,
        reason=reason,
        dtype=form.name,
        shape=expected.shape,
        elements=size,
        measures=measures_of(tally, wrong, None),
        worst=element(tally.worst, expected),
    )


EMPTY = "it has no elements, so nothing was compared in it"
"""Why an output fails of which neither side has any element."""
_BLIND = "all zeros would have passed too; give a smaller --atol"
_NO_FINITE = "no element is finite, so no numbers were compared in it"


def _judge_numbers(
    name: str, form: Format, expected: Tensor, actual: Tensor, rules: Rules
) -> TensorVerdict:
    threshold = threshold_for(form.name, rules.rtol, rules.atol)
    tally = measure(expected, actual, rtol=threshold.rtol, atol=threshold.atol, decode=form.decode)
    both_nan = 0 if rules.equal_nan else tally.both_nan
    wrong = tally.mismatched + tally.differing_nonfinite + both_nan
    size = math.prod(expected.shape)
    status, gate, reason = _number_gates(tally, threshold, both_nan, size)
    notes = []
    if not tally.compared:
        notes.append(_NO_FINITE)
    elif status is Status.PASS and was_blind(tally, threshold):
        notes.append(f"atol {threshold.atol:g} is more than any expected value: {_BLIND}")
    odd = tally.nonfinite or (tally.first_nan if both_nan else None)
    return TensorVerdict(
        name=name,
        status=status,
        gate=gate,
        reason=reason,
        dtype=form.name,
        shape=expected.shape,
        elements=size,
        threshold=threshold,
        measures=measures_of(tally, wrong, threshold),
        worst=element(odd or tally.worst, expected),
        resolution=resolution(tally, threshold),
        notes=tuple(notes),
    )


def _number_gates(
    tally: Tally, threshold: Threshold, both_nan: int, size: int
) -> tuple[Status, Gate, str]:
    if tally.differing_nonfinite:
        count = f"{tally.differing_nonfinite:,} of {size:,} elements"
        reason = f"NaN or infinity on one side only, or of another sign, in {count}"
        return Status.FAIL, Gate.NONFINITE, reason
    if both_nan:
        reason = f"NaN on both sides in {both_nan:,} of {size:,} elements; --equal-nan accepts that"
        return Status.FAIL, Gate.NONFINITE, reason
    if tally.mismatched:
        share = f"{100 * tally.mismatched / size:.3g}%"
        limit = f"{threshold.atol:g} + {threshold.rtol:g} x |expected|"
        reason = f"{tally.mismatched:,} of {size:,} elements ({share}) are beyond {limit}"
        return Status.FAIL, Gate.NUMBERS, reason
    if not tally.compared:
        return Status.PASS, Gate.NONFINITE, "NaN and infinity stand at the same places"
    return Status.PASS, Gate.NUMBERS, f"at most {tally.worst_use:.3g} of the tolerance is used"
