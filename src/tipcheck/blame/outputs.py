"""The verdict on the final outputs: what the whole comparison is about.

Tolerance first. A network whose outputs are beyond it is still as good as its baseline when both
are equally far from float64, and as good as its format when the format explains the distance; which
of these decided is said. Nothing that is missing, misshapen or NaN gets that far.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.blame.introduced import apart
from tipcheck.compare import Rules, compare_arrays
from tipcheck.compare.verdict import Gate, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from tipcheck.compare.budget import Budget
    from tipcheck.compare.verdict import TensorVerdict

    Array = npt.NDArray[Any]
    Referee = Callable[[int], Array | None]

_REFEREE_FACTOR_DB = 6.0
"""How much further from float64 than its baseline an output may be: twice as far."""


def judge_outputs(
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    rules: Rules,
    form: Budget,
    referee: Referee | None = None,
) -> tuple[TensorVerdict, ...]:
    """Judge the final outputs, in order; names of outputs need not agree, their order does.

    Args:
        expected: the baseline's.
        actual: the candidate's.
        rules: tolerance of the first gate.
        form: the format the candidate computes in.
        referee: gives an output in float64, by its place; None where there is none.
    """
    names = list(expected)
    renamed = dict(zip([*names, *list(actual)[len(names) :]], actual.values(), strict=False))
    comparison = compare_arrays(dict(expected), renamed, _rules(rules, form))
    verdicts = []
    for place, verdict in enumerate(comparison.tensors):
        if verdict.status is Status.FAIL and verdict.gate is Gate.NUMBERS:
            pair = (expected[verdict.name], renamed[verdict.name])  # numbers of both were compared
            verdicts.append(_beyond(verdict, place, pair, form, referee))
        else:
            verdicts.append(verdict)
    return tuple(verdicts)


def _rules(rules: Rules, form: Budget) -> Rules:
    """Return the tolerance of the coarser format, where the caller did not say another."""
    if rules.rtol is not None or rules.atol is not None or form.precision not in _TOLERANCE:
        return rules
    return replace(rules, rtol=_TOLERANCE[form.precision], atol=_TOLERANCE[form.precision])


_TOLERANCE = {"tf32": 1e-3, "float16": 1e-3, "bfloat16": 1e-2}


def _beyond(
    verdict: TensorVerdict,
    place: int,
    pair: tuple[Array, Array],
    form: Budget,
    referee: Referee | None,
) -> TensorVerdict:
    """Judge an output that is beyond the tolerance by how far it may be."""
    expected, actual = pair
    told = verdict.reason
    truth = referee(place) if referee else None
    if truth is not None and truth.shape == expected.shape:
        mine, theirs = (apart(truth, side, form.precision).sqnr_db for side in (actual, expected))
        if mine is not None and theirs is not None:
            distance = f"{mine:.1f} dB from float64, the baseline {theirs:.1f} dB"
            if mine >= theirs - _REFEREE_FACTOR_DB:
                return replace(verdict, status=Status.PASS, reason=f"{told}, but it is {distance}")
            told = f"{told}; it is {distance}"
    ratio = verdict.measures.sqnr_db if verdict.measures else None
    if ratio is None:
        return replace(verdict, reason=told)
    limits = f"{form.precision} gives {form.warn_db:g} dB or more in a network that is right"
    if ratio >= form.warn_db:
        return replace(verdict, status=Status.PASS, reason=f"{told}; {limits}")
    status = Status.SUSPECT if ratio >= form.fail_db else Status.FAIL
    return replace(verdict, status=status, reason=f"{told}; {limits}")


def worst(verdicts: tuple[TensorVerdict, ...]) -> Status:
    """Return the worst status; nothing compared is a failure."""
    found = {verdict.status for verdict in verdicts}
    looked = any(verdict.measures for verdict in verdicts)
    if not verdicts or not looked or found & {Status.FAIL, Status.CRASH}:
        return Status.FAIL
    return Status.SUSPECT if Status.SUSPECT in found else Status.PASS


def same_bits(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    """Whether two sets of outputs are equal to the last bit, NaN included."""
    return len(one) == len(other) and all(
        left.shape == right.shape and left.dtype == right.dtype and _equal(left, right)
        for left, right in zip(one.values(), other.values(), strict=True)
    )


def _equal(left: Array, right: Array) -> bool:
    return bool(np.array_equal(left.reshape(-1).view(np.uint8), right.reshape(-1).view(np.uint8)))
