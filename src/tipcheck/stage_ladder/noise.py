"""The noise floor: how far apart two right executions of this model may be, measured on itself.

A fixed tolerance knows nothing of a model. The float64 referee does: what a float32 stage is off
from it is rounding, amplified by this model, on these inputs. A stage that is many times further
away from its reference than rounding explains is doing something else.

The floor of an output is the smallest distance of any full-precision stage from the referee, so
that a stage that is wrong does not hide behind its own error; but never below what is usual over
all input sets, so that lucky inputs raise no alarm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tipcheck.stage_ladder.answers import Array, StageRun, numbers, opened

_EPS = 2.0**-24
"""Half a unit in the last place of float32, relative: no float32 output is more exact than that."""

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
class NoiseFloor:
    """Noise by input set and output.

    Attributes:
        floors: what rounding explains.
        to_referee: by stage, its worst distance from the referee; empty without one.
        referee: what the referee was, or why there is none.
    """

    floors: Mapping[Key, Distance] = field(default_factory=dict)
    to_referee: Mapping[str, Distance] = field(default_factory=dict)
    referee: str = ""

    def of(self, number: int, output: str) -> Distance | None:
        """Return the floor of one output for one input set; None where it is not known."""
        return self.floors.get((number, output))


def distance(reference: Array, found: Array) -> Distance | None:
    """Return how far two float64 arrays are apart; None where that is not defined."""
    if reference.shape != found.shape or not reference.size:
        return None
    finite = np.isfinite(reference) & np.isfinite(found)
    if not finite.all():
        reference, found = reference[finite], found[finite]
    if not reference.size:
        return None
    rms = float(np.sqrt(np.mean(np.square(reference))))
    if rms == 0.0 or not np.isfinite(rms):
        return None
    off = np.abs(found - reference)
    return Distance(float(np.sqrt(np.mean(np.square(off)))) / rms, float(off.max()) / rms)


def measure_noise(
    referee: StageRun, runs: Sequence[StageRun], bfloat16: frozenset[str], told: str
) -> NoiseFloor:
    """Measure the floor from the answers of the referee and of the full-precision stages."""
    found: dict[Key, dict[str, Distance]] = defaultdict(dict)
    for number, archive in referee.archives.items():
        with opened(archive) as truth:
            for name in truth:
                exact = truth[name]
                if exact.dtype.kind != "f":
                    continue
                for run in runs:
                    _measure_one(run, number, name, numbers(exact), found, bfloat16)
    usual = _usual(found)
    floors = {}
    for key, stages in found.items():
        best = min(stages.values(), key=lambda item: item.rms)
        over_sets = usual[key[1]]
        floors[key] = Distance(
            max(best.rms, over_sets.rms, _EPS), max(best.worst, over_sets.worst, _EPS)
        )
    to_referee: dict[str, Distance] = {}
    for stages in found.values():
        for stage, apart in stages.items():
            if stage not in to_referee or apart.rms > to_referee[stage].rms:
                to_referee[stage] = apart
    return NoiseFloor(floors, to_referee, told)


def _measure_one(
    run: StageRun,
    number: int,
    name: str,
    exact: Array,
    found: dict[Key, dict[str, Distance]],
    bfloat16: frozenset[str],
) -> None:
    if number not in run.archives:
        return
    with opened(run.archives[number]) as answers:
        if name not in answers:
            return
        array = answers[name]
        bits = name in bfloat16
        if array.dtype.kind == "f" or bits:
            apart = distance(exact, numbers(array, bfloat16=bits))
            if apart is not None:
                found[number, name][run.stage] = apart


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
