"""Puts known faults between two stages of a real model and counts how many the ladder finds.

A verifier that never fails is worth nothing, and looks the same as a good one. Here the faults are
known: their kind, place and size are drawn from a seed, and the same code judges as in ``verify``.
"""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tipcheck.backends.catalogue import STAGES
from tipcheck.backends.server.link import StageLink
from tipcheck.backends.stages import stage_kinds
from tipcheck.backends.subject import InputSet, InputSpec, Subject
from tipcheck.compare.verdict import Status
from tipcheck.errors import ToolError
from tipcheck.stage_ladder.answers import Array, StageRun
from tipcheck.stage_ladder.faults import (
    DIRECTIONS,
    STRUCTURAL,
    Answers,
    Direction,
    direction_of,
)
from tipcheck.stage_ladder.lineup import Lined
from tipcheck.stage_ladder.noise import NoiseFloor, measure_noise
from tipcheck.stage_ladder.settings import Settings
from tipcheck.stage_ladder.summing import LadderParts, sum_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tipcheck.stage_ladder.rung import LadderResult

SIZES = (1.0, 3.0, 10.0, 100.0)
WANTED = 0.99
"""Share of the faults at ten noise floors or more that have to be found."""
_SETS = 3
_TIME_LIMIT = 120.0


@dataclass(frozen=True, slots=True)
class FaultOutcome:
    """One fault, and what the ladder made of it.

    Attributes:
        kind: what was broken.
        place: where in the model; empty for faults of the outputs.
        size: in noise floors; None for faults without a size, inf for a fault as it is.
        stage: the rung it was put on.
        stays: whether the rungs above have it too.
        found: whether the ladder was not content.
        status: its verdict.
        blamed: the rung it blamed; None for none.
    """

    kind: str
    place: str
    size: float | None
    stage: str
    stays: bool
    found: bool
    status: Status
    blamed: str | None

    @property
    def misplaced(self) -> bool:
        """Whether it was found and another rung was blamed."""
        return self.found and self.blamed != self.stage


@dataclass(frozen=True, slots=True)
class SelftestResult:
    """What the self-test found.

    Attributes:
        seed: what was drawn from.
        faults: every fault.
        clean_runs: runs without a fault.
        alarms: what was said of runs without a fault, where it was not PASS.
    """

    schema: ClassVar[str] = "tipcheck.selftest/1"

    seed: int
    faults: tuple[FaultOutcome, ...]
    clean_runs: int
    alarms: tuple[str, ...]

    @property
    def large(self) -> tuple[FaultOutcome, ...]:
        """The faults that have to be found: ten noise floors or more, or of the structure."""
        return tuple(item for item in self.faults if item.size is None or item.size >= 10.0)

    @property
    def rate(self) -> float:
        """Share of those that were found."""
        return sum(item.found for item in self.large) / max(1, len(self.large))

    @property
    def misplaced(self) -> tuple[FaultOutcome, ...]:
        """The faults that were found on the wrong rung."""
        return tuple(item for item in self.faults if item.misplaced)

    @property
    def good(self) -> bool:
        """Whether the ladder does what it promises."""
        return bool(self.large and self.rate >= WANTED and not self.misplaced and not self.alarms)


def selftest(
    seed: int, faults: int, clean: int, say: Callable[[str], None] = lambda _: None
) -> SelftestResult:
    """Run the self-test.

    Args:
        seed: draws models, inputs, and the kind, place and size of every fault.
        faults: how many faults.
        clean: how many runs without a fault, each of another model; at least one.
        say: called with what is being done.

    Raises:
        ToolError: Paddle does not start, or the model does not run.
    """
    outcomes: list[FaultOutcome] = []
    alarms: list[str] = []
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="tipcheck-selftest-") as folder:
        shares = np.array_split(np.arange(faults), clean)
        for number, record in enumerate(_records(seed, clean, Path(folder))):
            say(f"model {number + 1} of {clean}: {len(outcomes)} faults so far")
            result = record.judged(record.runs)
            if result.status is not Status.PASS:
                alarms.append(f"model {number}: {result.status.value}: {result.sentence}")
            outcomes.extend(record.broken(int(index), random) for index in shares[number])
            record.forget()
    return SelftestResult(seed, tuple(outcomes), clean, tuple(alarms))


def _records(seed: int, count: int, folder: Path) -> Iterator[_Record]:
    """Yield recorded models, a few of them in the making at any time."""
    with StageLink(folder) as link:
        cores = len(os.sched_getaffinity(0))
        with ThreadPoolExecutor(max(1, min(4, cores))) as pool:

            def make(number: int) -> _Record:
                room = folder / f"model_{number}"
                room.mkdir()
                request = {"do": "selftest", "room": str(room), "seed": seed * 1000 + number}
                end = link.run(request, _TIME_LIMIT)
                if end.died or not end.answer("done"):
                    last = end.last_lines[-1] if end.last_lines else "it said nothing"
                    raise ToolError(f"the model of the self-test {end.died or 'stopped'} ({last})")
                places = {m["fault"]: m["place"] for m in end.messages if "fault" in m}
                return _Record(room, places)

            yield from pool.map(make, range(count))


class _Record:
    """One model, run at every stage."""

    def __init__(self, room: Path, places: Mapping[str, str]) -> None:
        kinds = stage_kinds()
        self._room = room
        self._places = places
        names = [way.name for way in STAGES if (room / f"{way.name}_0.npz").exists()]
        self._lined = [Lined(way, kinds[way.name], way.what) for way in STAGES if way.name in names]
        self.runs = {name: StageRun(name, self._archives(name)) for name in names}
        truth = StageRun("referee", self._archives("referee"))
        self._truth = truth
        self._noise = self._measure(self.runs)
        self._made = 0

    def _archives(self, stage: str) -> dict[int, Path]:
        return {number: self._room / f"{stage}_{number}.npz" for number in range(_SETS)}

    def _measure(self, runs: Mapping[str, StageRun]) -> NoiseFloor:
        told = "the export in float64"
        return measure_noise(self._truth, list(runs.values()), frozenset(), told)

    def judged(self, runs: Mapping[str, StageRun]) -> LadderResult:
        """Return the ladder over these answers."""
        sets = [self._room / f"inputs_{number}.npz" for number in range(_SETS)]
        subject = Subject(
            "selftest",
            "",
            (InputSpec("image", (-1, 3, 16, 16), "float32"),),
            tuple(InputSet(path.stem, str(path)) for path in sets),
        )
        parts = LadderParts(subject, self._lined, runs, self._measure(runs), {}, frozenset(), None)
        return sum_up(parts, [str(path) for path in sets], Settings())

    def broken(self, index: int, random: np.random.Generator) -> FaultOutcome:
        """Put one fault on one rung, and say what the ladder makes of it."""
        names = [item.way.name for item in self._lined]
        place = int(random.integers(1, len(names)))
        stays = bool(random.integers(2))
        kind, size = _drawn(index, [*self._places], random)
        touched = names[place:] if stays else names[place : place + 1]
        seed = int(random.integers(1 << 31))
        changed = dict(self.runs)
        for stage in touched:
            answers = self._changed(stage, kind, size, seed)
            changed[stage] = replace(self.runs[stage], archives=self._write(answers))
        result = self.judged(changed)
        found = result.status is not Status.PASS
        return FaultOutcome(
            kind=kind,
            place=self._places.get(kind, ""),
            size=size,
            stage=names[place],
            stays=stays,
            found=found,
            status=result.status,
            blamed=result.first_break,
        )

    def _changed(self, stage: str, kind: str, size: float | None, seed: int) -> Answers:
        answers = self._answers(stage)
        random = np.random.default_rng(seed)  # the same for every stage that has this fault
        if kind in STRUCTURAL:
            STRUCTURAL[kind](answers, random)
            return answers
        direction = self._direction(kind, answers, random)
        if size is None or size == np.inf:
            return direction.times(answers, 1.0)
        scaled = direction.scaled(answers, self._noise, size)
        return answers if scaled is None else scaled

    def _direction(self, kind: str, answers: Answers, random: np.random.Generator) -> Direction:
        if kind in DIRECTIONS:
            return direction_of(DIRECTIONS[kind], answers, random)
        index = [*self._places].index(kind)
        return Direction(
            {number: _read(self._room / f"fault_{index}_{number}.npz") for number in range(_SETS)}
        )

    def _answers(self, stage: str) -> Answers:
        return {n: _read(path) for n, path in self.runs[stage].archives.items()}

    def _write(self, answers: Answers) -> dict[int, Path]:
        archives = {}
        for number, outputs in answers.items():
            self._made += 1
            archives[number] = self._room / f"broken_{self._made}.npz"
            np.savez(archives[number], **outputs)  # type: ignore[arg-type]
        return archives

    def forget(self) -> None:
        """Delete the files."""
        for path in self._room.rglob("*"):
            if path.is_file():
                path.unlink()


def _drawn(
    index: int, of_model: Sequence[str], random: np.random.Generator
) -> tuple[str, float | None]:
    """Return kind and size of one fault: every kind at every size in turn, from a drawn start."""
    sized = [*of_model, *DIRECTIONS]
    if index % 6 == 5:
        kinds = [*STRUCTURAL]
        return kinds[int(random.integers(len(kinds)))], None
    kind = sized[int(random.integers(len(sized)))]
    if index % 6 == 4:
        return kind, np.inf
    return kind, SIZES[index % 6]


def _read(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
