"""One stage judged against another, over all input sets and outputs.

Four rules, in this order, per output: the gates of ``compare`` (structure, NaN, integers, and for
full precision the tolerance); the noise budget of the precision; the noise floor of the model; and
decisions that flipped. The output with the worst verdict decides; among equals the furthest off.

An output that has no elements for some inputs, such as the boxes of a picture without objects, is
the same on both sides there, and counts as nothing that was compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tipcheck.compare import Rules, compare_files
from tipcheck.compare.budget import budget_for, coarser
from tipcheck.compare.judge import EMPTY, judge
from tipcheck.compare.tensors import MemoryTensor
from tipcheck.compare.verdict import Gate, Status, TensorVerdict
from tipcheck.stage_ladder.answers import numbers, opened
from tipcheck.stage_ladder.factors import NOISE_FACTOR, WORST_FACTOR
from tipcheck.stage_ladder.flips import count_flips, together
from tipcheck.stage_ladder.noise import Distance, Shaken, turned
from tipcheck.stage_ladder.rung import Against, Flips

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tipcheck.compare.budget import Budget
    from tipcheck.stage_ladder.answers import Array, StageRun
    from tipcheck.stage_ladder.noise import NoiseFloor
    from tipcheck.stage_ladder.settings import Settings

_BAD = (Status.PASS, Status.SUSPECT, Status.FAIL)
_FULL = ("float32", "float64")
_LOW_FACTOR = 24.0
"""As ``NOISE_FACTOR``, where the floor is not measured in this precision but scaled to it."""
_SHAKEN_FACTOR = 1.5
"""How many times the decisions that noise of the inputs turns a lower precision may turn itself."""
_FEW_DIFFER = 0.05
"""Share of integers that lower precision may change before it is more than a close decision."""


@dataclass(frozen=True, slots=True)
class _Finding:
    """The verdict on one output for one input set."""

    status: Status
    rule: str
    reason: str
    number: int
    verdict: TensorVerdict
    times: float | None
    turned: bool = False

    @property
    def rank(self) -> tuple[int, float]:
        """How bad it is."""
        return _BAD.index(self.status), -_db(self.verdict)


class Judge:
    """Judges stages by what the caller says and by the noise of the model."""

    def __init__(
        self, settings: Settings, noise: NoiseFloor, sets: Sequence[str], bfloat16: frozenset[str]
    ) -> None:
        """Say how to judge; ``sets`` are the names of the input sets."""
        self._settings = settings
        self._noise = noise
        self._sets = sets
        self._bfloat16 = bfloat16

    def judge(self, reference: StageRun, run: StageRun, precision: str) -> Against:
        """Compare a stage with another one."""
        findings: list[_Finding] = []
        flips: list[Flips] = []
        outputs = elements = compared = 0
        for number, expected in reference.archives.items():
            actual = run.archives.get(number)
            if actual is None:
                continue
            compared += 1
            for finding, flip in self._one_set(expected, actual, number, precision):
                findings.append(finding)
                flips += [flip] if flip else []
                if finding.verdict.measures:
                    outputs += 1
                    elements += finding.verdict.elements
        if not findings:
            return Against(reference.stage, Status.FAIL, "gates", "nothing was compared")
        if not elements and all(item.status is Status.PASS for item in findings):
            return Against(reference.stage, Status.PASS, "gates", EMPTY, sets=compared)
        worst = max(findings, key=lambda item: item.rank)
        measured = [item for item in findings if item.verdict.measures and not item.turned]
        measured = measured or findings
        floats = [item for item in measured if item.verdict.gate is not Gate.EXACT]
        furthest = min(floats or measured, key=lambda item: _db(item.verdict))
        measures = worst.verdict.measures or furthest.verdict.measures
        return Against(
            stage=reference.stage,
            status=worst.status,
            rule=worst.rule,
            reason=worst.reason,
            sqnr_db=_db(furthest.verdict) if worst.status is Status.PASS else _db(worst.verdict),
            worst=measures.max_abs_over_rms if measures else None,
            times_noise=max((f.times for f in findings if f.times is not None), default=None),
            where=f"{worst.verdict.name}, {self._sets[worst.number]}",
            verdict=worst.verdict,
            sets=compared,
            outputs=outputs,
            elements=elements,
            flips=together(flips),
        )

    def _one_set(
        self, expected: Path, actual: Path, number: int, precision: str
    ) -> list[tuple[_Finding, Flips | None]]:
        rules = Rules(
            rtol=self._settings.rtol,
            atol=self._settings.atol,
            equal_nan=True,
            bfloat16=frozenset(),
        )
        if self._bfloat16:
            with opened(expected) as one, opened(actual) as other:
                names = self._bfloat16 & one.keys() & other.keys()
                bits = frozenset(name for name in names if _bits(one[name]) and _bits(other[name]))
            rules = replace(rules, bfloat16=bits)
        comparison = compare_files(expected, actual, rules)
        found = []
        for verdict in comparison.tensors:
            floor = self._noise.of(number, verdict.name)
            judged = self._scaled(verdict, expected, actual, rules)
            finding = self._finding(judged, number, floor, precision)
            if finding.rule == "gates" and finding.status is not Status.PASS:
                finding = self._unless_rounding(finding, expected, actual, precision)
            flip = None
            scores = len(judged.shape) == 2 and not judged.dtype.startswith("complex")
            if judged.measures and judged.threshold and scores:
                flip = self._flips(expected, actual, verdict.name, floor, precision)
                if flip and flip.flipped_clearly and finding.status is Status.PASS:
                    told = f"{flip.flipped_clearly} of {flip.decisions} decisions flip clearly"
                    finding = replace(finding, status=Status.SUSPECT, rule="decisions", reason=told)
            found.append((finding, flip))
        return found

    def _scaled(
        self, verdict: TensorVerdict, expected: Path, actual: Path, rules: Rules
    ) -> TensorVerdict:
        """Judge again with a tolerance that fits the size of the output.

        An absolute tolerance without a scale would fail an element near zero of an output whose
        typical element is a thousand, where every right execution differs by more.
        """
        measures, threshold = verdict.measures, verdict.threshold
        if (
            self._settings.atol is not None
            or threshold is None
            or measures is None
            or verdict.status is Status.PASS
            or verdict.gate is not Gate.NUMBERS
            or not measures.max_abs_over_rms
            or not measures.max_abs
        ):
            return verdict
        rms = measures.max_abs / measures.max_abs_over_rms
        if rms <= 1.0:
            return verdict
        wide = replace(rules, atol=threshold.atol * rms, rtol=threshold.rtol)
        with opened(expected) as one, opened(actual) as other:
            again = judge(
                verdict.name,
                MemoryTensor(one[verdict.name]),
                MemoryTensor(other[verdict.name]),
                wide,
            )
        source = f"{threshold.source}, atol times the output's rms"
        limit = again.threshold
        return replace(again, threshold=replace(limit, source=source) if limit else None)

    def _finding(
        self, verdict: TensorVerdict, number: int, floor: Distance | None, precision: str
    ) -> _Finding:
        measures = verdict.measures
        if verdict.gate is not Gate.NUMBERS or measures is None:
            status = verdict.status
            if verdict.reason == EMPTY:
                status = Status.PASS
            elif status is not Status.PASS and _is_close_decision(verdict, precision):
                status = Status.SUSPECT
            return _Finding(status, "gates", verdict.reason, number, verdict, None)
        decibels = _db(verdict)
        apart = 0.0 if decibels == math.inf else 10 ** (-decibels / 20)
        worst = measures.max_abs_over_rms or 0.0
        status, rule, reason = self._by_numbers(verdict, Distance(apart, worst), floor, precision)
        shaken = self._noise.shaken.get(precision, Shaken()).apart.get((number, verdict.name))
        if status is not Status.PASS and _is_rounding(shaken, Distance(apart, worst)):
            told = f"{reason}, as inputs with the noise of {precision} do"
            status, rule, reason = Status.PASS, "noise", told
        times = apart / floor.rms if floor and precision in _FULL else None
        return _Finding(status, rule, reason, number, verdict, times)

    def _unless_rounding(
        self, finding: _Finding, expected: Path, actual: Path, precision: str
    ) -> _Finding:
        """Pass what turned, where exact arithmetic turns as much of every stage's answer.

        Or, for lower precision, where as much turns once the inputs have noise of its size.
        """
        name, number = finding.verdict.name, finding.number
        key = (number, name)
        shaken = self._shaken(precision, key, finding.verdict.elements)
        limit = max(NOISE_FACTOR * self._noise.turned.get(key, 0.0), shaken)
        if not limit or finding.verdict.gate is Gate.NUMBERS:
            return finding
        with opened(expected) as one, opened(actual) as other:
            if name not in one or name not in other:
                return finding
            wanted, found = one[name], other[name]
        if wanted.dtype != found.dtype or wanted.ndim != found.ndim:
            return finding
        if turned(wanted, found) > limit:
            return finding
        why = f"inputs with the noise of {precision} do" if shaken else "exact arithmetic does"
        told = f"{finding.reason}, as {why} to every stage"
        return replace(finding, status=Status.PASS, rule="noise", reason=told, turned=True)

    def _shaken(self, precision: str, key: tuple[int, str], elements: int) -> float:
        """Return how many elements a lower precision may turn: those that noise turns, and a pair.

        The pair, since the noise was drawn a few times only; it goes for outputs that noise turns
        at all, and never for more than half of an output.
        """
        counts = self._noise.shaken.get(precision, Shaken()).turned
        if not any(name == key[1] for _, name in counts):
            return 0.0
        count = counts.get(key, 0.0)
        return count if math.isinf(count) else min(_SHAKEN_FACTOR * count + 2, elements / 2)

    def _by_numbers(
        self, verdict: TensorVerdict, apart: Distance, floor: Distance | None, precision: str
    ) -> tuple[Status, str, str]:
        """Return status, rule and reason for an output that has come to the numbers."""
        full = precision in _FULL
        if full and verdict.status is not Status.PASS:
            given = self._settings.rtol is not None or self._settings.atol is not None
            if given or not _is_rounding(floor, apart):
                return Status.FAIL, "gates", verdict.reason
        budget = budget_for(precision, self._settings.budgets)
        status, reason = _by_budget(budget, _relief(floor, precision), apart)
        if status is not Status.PASS:
            return status, "budget", reason
        if not full or floor is None:
            return Status.PASS, "budget", _kept(apart, precision)
        if apart.rms > noise_factor(verdict.elements) * floor.rms:
            told = f"{apart.rms / floor.rms:.3g} times the noise that {precision} explains"
            return Status.SUSPECT, "noise", told
        if apart.worst > WORST_FACTOR * floor.worst:
            times = apart.worst / floor.worst
            told = f"one element is off by {times:.3g} times the worst rounding"
            return Status.SUSPECT, "noise", told
        return Status.PASS, "noise", _kept(apart, precision)

    def _flips(
        self, expected: Path, actual: Path, name: str, floor: Distance | None, precision: str
    ) -> Flips | None:
        bits = name in self._bfloat16
        with opened(expected) as one, opened(actual) as other:
            sides = [numbers(side[name], bfloat16=bits) for side in (one, other)]
        budget = budget_for(precision, self._settings.budgets)
        allowed = 10 ** (-(budget.warn_db - _relief(floor, precision)) / 20)
        if precision in _FULL and floor:
            allowed = NOISE_FACTOR * floor.worst
        return count_flips(sides[0], sides[1], 3 * allowed)


def _bits(array: Array) -> bool:
    """Whether an array can hold bfloat16; a stage may give another type for such an output."""
    return array.dtype.itemsize == 2 and array.dtype.kind in "uV"


def noise_factor(elements: int) -> float:
    """Return how many noise floors are still no reason to doubt; more for small outputs."""
    return NOISE_FACTOR * (1.0 + 2.0 / math.sqrt(max(1, elements)))


def _db(verdict: TensorVerdict) -> float:
    """Signal to noise; the worst there is for what could not be compared."""
    measures = verdict.measures
    if measures is None or (verdict.status is not Status.PASS and verdict.gate is Gate.NONFINITE):
        return -math.inf
    if measures.sqnr_db is None:
        return math.inf if verdict.status is Status.PASS else -math.inf
    return measures.sqnr_db


def _relief(floor: Distance | None, precision: str) -> float:
    """Return by how many dB the budget is widened: where this model amplifies rounding itself."""
    if floor is None:
        return 0.0
    budget = budget_for(precision)
    expected = floor.decibels - 20 * math.log10(coarser(precision))
    factor = NOISE_FACTOR if precision in _FULL else _LOW_FACTOR
    return max(0.0, budget.warn_db - (expected - 20 * math.log10(factor)))


def _by_budget(budget: Budget, relief: float, apart: Distance) -> tuple[Status, str]:
    wider = 10 ** (relief / 20)
    for status, limit in ((Status.FAIL, budget.fail_db), (Status.SUSPECT, budget.warn_db)):
        if apart.decibels < limit - relief:
            told = f"{apart.decibels:.1f} dB, where {budget.precision} keeps {limit - relief:.0f}"
            return status, told
    if apart.worst > budget.worst * wider:
        limit = budget.worst * wider
        told = f"one element is off by {apart.worst:.3g} x rms, more than {limit:.3g}"
        return Status.SUSPECT, told
    return Status.PASS, ""


def _kept(apart: Distance, precision: str) -> str:
    if apart.rms == 0.0:
        return "the same, bit for bit"
    return f"{apart.decibels:.0f} dB, which {precision} explains"


def _is_close_decision(verdict: TensorVerdict, precision: str) -> bool:
    """Whether lower precision only turned a few integers, as it may where scores are close."""
    measures = verdict.measures
    if precision in _FULL or verdict.gate is not Gate.EXACT or measures is None:
        return False
    return measures.mismatched <= _FEW_DIFFER * verdict.elements


def _is_rounding(floor: Distance | None, apart: Distance) -> bool:
    """Whether a difference beyond the tolerance is no more than this model's own rounding."""
    return (
        floor is not None
        and apart.rms <= NOISE_FACTOR * floor.rms
        and apart.worst <= WORST_FACTOR * floor.worst
    )
