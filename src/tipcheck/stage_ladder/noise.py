"""The noise floor: how far apart two right executions of this model may be, measured on itself.

A fixed tolerance knows nothing of a model. The float64 referee does: what a float32 stage is off
from it is rounding, amplified by this model, on these inputs. A stage that is many times further
away from its reference than rounding explains is doing something else.

The floor of an output is the smallest distance of any full-precision stage from the referee, so
that a stage that is wrong does not hide behind its own error; but never below what is usual over
all input sets, so that lucky inputs raise no alarm.

Rounding also turns integers, counts of boxes and what overflows, where scores are all but equal.
How many of those differ between the referee and every full-precision stage is counted likewise.

A referee that no stage comes near on most input sets is no referee: it has run something else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tipcheck.stage_ladder.answers import Array, StageRun, numbers, opened

STRANGER = 1e-2
"""Distance of every stage, on most input sets, from which a referee is not believed."""
_AGREES = 0.25
"""Share of the input sets on which a referee has to agree about integers and infinities."""
_CALM = 0.05
"""Distance up to which an output is said to have stayed where it was when the inputs moved."""
_EPS = 2.0**-22
"""The least floor: four half units in the last place of float32, relative.

Outputs are stored to half a unit, but kernels for exp, log and their like are right to a few units
only, and differently in every library; a model that amplifies nothing shows just that.
"""

Key = tuple[int, str]
"""Index of the input set, and name of the output."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two arrays are apart: rms and maximum of the difference, over rms."""

    rms: float
    worst: float

    @property
    def decibels(self) -> float:
        """Signal to noise."""
        return float("inf") if self.rms == 0 else -20 * float(np.log10(self.rms))


@dataclass(frozen=True, slots=True)
class Shaken:
    """How far the answers of one stage move when its inputs do, as little as one precision shows.

    Attributes:
        turned: integers and infinities that are others; only where that is any.
        apart: how far floating outputs moved.
    """

    turned: Mapping[Key, float] = field(default_factory=dict)
    apart: Mapping[Key, Distance] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """Noise by input set and output.

    Attributes:
        floors: what rounding explains.
        turned: how many integers, infinities or, where shapes differ, whatever number of
            elements rounding turns; only where that is any.
        shaken: by a lower precision, how far answers move when inputs have noise of its size.
        to_referee: by stage, its worst distance from the referee; empty without one.
        referee: what the referee was, or why there is none.
    """

    floors: Mapping[Key, Distance] = field(default_factory=dict)
    turned: Mapping[Key, float] = field(default_factory=dict)
    shaken: Mapping[str, Shaken] = field(default_factory=dict)
    to_referee: Mapping[str, Distance] = field(default_factory=dict)
    referee: str = ""

    def of(self, number: int, output: str) -> Distance | None:
        """Return the floor of one output for one input set; None where it is not known."""
        return self.floors.get((number, output))


def distance(reference: Array, found: Array) -> Distance | None:
    """Return how far two float64 arrays are apart; None where that is not defined.

    Where exact arithmetic gives nothing but zeros, whatever else was found is all rounding:
    infinitely far.
    """
    if reference.shape != found.shape or not reference.size:
        return None
    finite = np.isfinite(reference) & np.isfinite(found)
    if not finite.all():
        reference, found = reference[finite], found[finite]
    if not reference.size:
        return None
    with np.errstate(all="ignore"):  # numbers near the end of float64 overflow when squared
        rms = float(np.sqrt(np.mean(np.square(reference))))
        off = np.abs(found - reference)
        apart, worst = float(np.sqrt(np.mean(np.square(off)))), float(off.max())
    if not (np.isfinite(rms) and np.isfinite(apart)):
        return None
    if rms == 0.0:
        return Distance(float("inf"), float("inf")) if worst else None
    return Distance(apart / rms, worst / rms)


def turned(exact: Array, found: Array) -> float:
    """Return how many integers or infinities are others than in exact arithmetic."""
    if exact.shape != found.shape:
        return float("inf") if exact.ndim == found.ndim else 0.0
    if exact.dtype.kind in "biu":
        return float(np.count_nonzero(exact != found))
    if exact.dtype.kind != "f" or found.dtype.kind != "f":
        return 0.0
    with np.errstate(all="ignore"):
        same = np.isfinite(exact) == np.isfinite(found)
        same &= np.isfinite(exact) | (exact == found) | (np.isnan(exact) & np.isnan(found))
    return float(np.count_nonzero(~same))


def measure_noise(
    referee: StageRun, runs: Sequence[StageRun], bfloat16: frozenset[str], told: str
) -> NoiseFloor:
    """Measure the floor from the answers of the referee and of the full-precision stages."""
    found: dict[Key, dict[str, Distance]] = defaultdict(dict)
    others: dict[Key, list[float]] = defaultdict(list)
    for number, archive in referee.archives.items():
        with opened(archive) as truth:
            for name in truth:
                exact = truth[name]
                for run in runs:
                    _measure_one(run, (number, name), exact, found, others, bfloat16)
    usual = _usual(found)
    floors = {}
    for key, stages in found.items():
        best = min(stages.values(), key=lambda item: item.rms)
        over_sets = usual[key[1]]
        if over_sets.rms > STRANGER:
            continue
        floors[key] = Distance(
            max(best.rms, over_sets.rms, _EPS), max(best.worst, over_sets.worst, _EPS)
        )
    to_referee: dict[str, Distance] = {}
    for stages in found.values():
        for stage, apart in stages.items():
            if not np.isfinite(apart.rms):
                continue
            if stage not in to_referee or apart.rms > to_referee[stage].rms:
                to_referee[stage] = apart
    return NoiseFloor(floors, _believed(others), {}, to_referee, told)


def measure_shaken(
    still: StageRun, shaken: Sequence[StageRun], bfloat16: frozenset[str], times: float
) -> Shaken:
    """Measure how far a stage's answers move; outputs that move on most inputs are left out.

    Args:
        still: the stage on the inputs as they are.
        shaken: the same on inputs with noise, as often as that was drawn.
        bfloat16: names of outputs that hold bits.
        times: how many times the noise of the precision that was.
    """
    others: dict[Key, list[float]] = defaultdict(list)
    moves: dict[Key, Distance] = {}
    sizes: dict[Key, int] = {}
    for run in shaken:
        found: dict[Key, dict[str, Distance]] = defaultdict(dict)
        counts: dict[Key, list[float]] = defaultdict(list)
        for number, archive in run.archives.items():
            with opened(archive) as moved:
                for name in moved:
                    key = (number, name)
                    array = moved[name]
                    if name in bfloat16 and array.dtype.kind in "uV":
                        array = numbers(array, bfloat16=True)
                    _measure_one(still, key, array, found, counts, bfloat16)
                    sizes[key] = array.size
        for key, stages in found.items():
            far = stages[still.stage]
            before = moves.get(key, far)
            moves[key] = Distance(max(far.rms, before.rms), max(far.worst, before.worst))
        for key, seen in counts.items():
            others[key] = [max([*seen, *others[key]])]
    apart = {key: Distance(far.rms / times, far.worst / times) for key, far in moves.items()}
    calm: dict[str, list[bool]] = defaultdict(list)
    for (_, name), far in apart.items():
        calm[name].append(far.rms <= _CALM)
    steady = {name for name, which in calm.items() if sum(which) >= _AGREES * len(which)}
    some = {key: most[0] for key, most in others.items() if 0 < most[0] <= sizes[key] / 2}
    turned = some | {key: most for key, most in _believed(others).items() if np.isinf(most)}
    return Shaken(turned, {key: far for key, far in apart.items() if key[1] in steady})


def _believed(others: Mapping[Key, Sequence[float]]) -> dict[Key, float]:
    """Return what rounding turns, for outputs about which the referee is otherwise right."""
    least = {key: min(counts) for key, counts in others.items()}
    by_output: dict[str, list[float]] = defaultdict(list)
    for (_, name), count in least.items():
        by_output[name].append(count)
    believed = {
        name for name, counts in by_output.items() if counts.count(0.0) >= _AGREES * len(counts)
    }
    return {key: count for key, count in least.items() if count and key[1] in believed}


def _measure_one(
    run: StageRun,
    key: Key,
    exact: Array,
    found: dict[Key, dict[str, Distance]],
    others: dict[Key, list[float]],
    bfloat16: frozenset[str],
) -> None:
    number, name = key
    if number not in run.archives:
        return
    with opened(run.archives[number]) as answers:
        if name not in answers:
            return
        array = answers[name]
    bits = name in bfloat16
    if not bits:
        others[key].append(turned(exact, array))
    if exact.dtype.kind == "f" and (array.dtype.kind == "f" or bits):
        apart = distance(numbers(exact), numbers(array, bfloat16=bits))
        if apart is not None:
            found[key][run.stage] = apart


def _usual(found: Mapping[Key, Mapping[str, Distance]]) -> dict[str, Distance]:
    """Return, by output, the median over input sets of the best stage's distance."""
    best: dict[str, list[Distance]] = defaultdict(list)
    for (_, name), stages in found.items():
        best[name].append(min(stages.values(), key=lambda item: item.rms))
    return {
        name: Distance(
            float(np.median([item.rms for item in items])),
            float(np.median([item.worst for item in items])),
        )
        for name, items in best.items()
    }
