"""From what the stages gave to the rungs, the verdict on all of it, and one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcheck.backends.exports.program import Program
from tipcheck.backends.subject import Subject
from tipcheck.compare.budget import budget_for
from tipcheck.compare.verdict import Status
from tipcheck.stage_ladder.against import Judge, noise_factor
from tipcheck.stage_ladder.answers import StageRun
from tipcheck.stage_ladder.lineup import Lined
from tipcheck.stage_ladder.noise import NoiseFloor
from tipcheck.stage_ladder.origin import blame_the_origin
from tipcheck.stage_ladder.rung import LadderResult, Rung
from tipcheck.stage_ladder.sentence import sentence_of
from tipcheck.stage_ladder.states import judge_state, rows_are_independent
from tipcheck.stage_ladder.worth import always_empty, same_everywhere, worth_of

if TYPE_CHECKING:
    from tipcheck.stage_ladder.rung import Against, SetNote, StateCheck
    from tipcheck.stage_ladder.settings import Settings

_ORDER = (Status.PASS, Status.SUSPECT, Status.FAIL, Status.CRASH)
_FULL = ("float32", "float64")
_NO_ELEMENTS = "it has no elements for any input; give inputs that fill it with --input"
_LOUD = 10_000_000
"""Bytes of output from which a stage is said to print a lot."""


@dataclass(frozen=True, slots=True)
class LadderParts:
    """Everything that is known once the workers are done."""

    subject: Subject
    lined: Sequence[Lined]
    runs: Mapping[str, StageRun]
    noise: NoiseFloor
    dropped: Mapping[int, str]
    bfloat16: frozenset[str]
    program: Program | None


def sum_up(parts: LadderParts, sets: Sequence[str], settings: Settings) -> LadderResult:
    """Return the whole ladder."""
    names = [item.name for item in parts.subject.sets]
    answered = [item for item in parts.lined if parts.runs[item.way.name].answered]
    bottom = parts.runs[answered[0].way.name] if answered else None
    notes = worth_of(names, sets, bottom, parts.dropped, parts.noise)
    judge = Judge(settings, parts.noise, names, parts.bfloat16)
    rungs = blame_the_origin(_Rungs(parts, settings, judge, bottom, notes).all())
    compared = len(answered)
    empty = always_empty(bottom) if bottom else []
    status, sentence, broken = _overall(rungs, notes, compared, settings, parts.subject.facts)
    if status is Status.PASS and empty:
        status, sentence = (
            Status.FAIL,
            f"nothing was compared in {', '.join(empty)}: {_NO_ELEMENTS}",
        )
    resolution, where = _resolution(parts, notes, settings) if compared > 1 else (None, "")
    return LadderResult(
        model=parts.subject.name,
        status=status,
        sentence=sentence,
        rungs=rungs,
        first_break=broken,
        sets=notes,
        referee=parts.noise.referee,
        resolution=resolution,
        resolution_where=where,
        compared=compared,
        facts=dict(parts.subject.facts),
    )


class _Rungs:
    """Makes the rungs, from the bottom up."""

    def __init__(
        self,
        parts: LadderParts,
        settings: Settings,
        judge: Judge,
        bottom: StageRun | None,
        notes: Sequence[SetNote],
    ) -> None:
        self._parts = parts
        self._settings = settings
        self._judge = judge
        self._bottom = bottom
        self._notes = notes
        self._below: StageRun | None = None
        self._differ: set[str] = set()
        self._same = same_everywhere(bottom) if bottom else []
        floors = [
            floor
            for (number, _), floor in parts.noise.floors.items()
            if number == (min(bottom.archives) if bottom else -1) and math.isfinite(floor.worst)
        ]
        self._floor = max(floors, key=lambda item: item.worst, default=None)
        plain = parts.runs.get("executor") or parts.runs.get("inference")
        checks = plain.checks if plain else ()
        if not checks and "inference" in parts.runs:
            checks = parts.runs["inference"].checks
        self._mixes = rows_are_independent(checks, settings, self._floor)

    def all(self) -> tuple[Rung, ...]:
        return tuple(self._one(item) for item in self._parts.lined)

    def _one(self, item: Lined) -> Rung:
        run = self._parts.runs[item.way.name]
        if run.unsupported:
            told = "; ".join(filter(None, (run.unsupported, run.get)))
            return Rung(item.way.name, item.changed, Status.UNSUPPORTED, told)
        below = bottom = None
        precision = item.kind.precision
        if run.answered and self._bottom is not None and run is not self._bottom:
            bottom = self._judge.judge(self._bottom, run, precision)
            below = bottom
            if self._below is not None and self._below is not self._bottom:
                below = self._judge.judge(self._below, run, precision)
        state: tuple[StateCheck, ...] = ()
        if item.kind.inference:
            state = judge_state(run.checks, precision, self._settings, self._floor, self._mixes)
        status, reason = self._status(run, precision, bottom, below, state)
        to_referee = self._parts.noise.to_referee.get(run.stage)
        if run.answered and precision in _FULL:
            self._below = run
        return Rung(
            stage=item.way.name,
            changed=item.changed,
            status=status,
            reason=reason,
            below=below,
            bottom=bottom,
            referee_db=to_referee.decibels if to_referee else None,
            spread=run.spread,
            spread_fresh=run.spread_fresh,
            state=state,
            seconds=run.seconds,
            last_lines=run.last_lines,
            notes=self._told(run),
        )

    def _status(
        self,
        run: StageRun,
        precision: str,
        bottom: Against | None,
        below: Against | None,
        state: Sequence[StateCheck],
    ) -> tuple[Status, str]:
        crash = self._crash(run)
        if crash:
            return Status.CRASH, crash
        wild = self._wild(run, precision)
        if wild:
            return Status.FAIL, wild
        worst, reason = Status.PASS, ""
        if bottom is not None and self._bottom is not None:
            short = len(self._bottom.archives) - bottom.sets
            if short > 0:
                return Status.FAIL, f"answered {short} input sets fewer than {self._bottom.stage}"
            worst, reason = bottom.status, bottom.reason
            if worst is not Status.PASS:
                self._differ.add(run.stage)
            if worst is not Status.PASS and below and self._shares(below):
                reason = f"as {below.stage}, whose answers differ already"
        for check in state:
            if check.status in _ORDER and _ORDER.index(check.status) > _ORDER.index(worst):
                worst, reason = check.status, check.reason
        return worst, reason

    def _shares(self, below: Against) -> bool:
        """Whether a rung has its difference from the rung below it, which had it already."""
        return below.status is Status.PASS and below.stage in self._differ

    def _crash(self, run: StageRun) -> str:
        """Return why a stage gave too few answers; empty when it gave all."""
        if run.crash:
            return run.crash
        if not run.answered:
            why = next(iter(run.problems.values()), "it said nothing")
            return f"gives no answer to any input: {why}"
        missing = [number for number in run.problems if number not in self._parts.dropped]
        if not missing:
            return ""
        name = self._parts.subject.sets[missing[0]].name
        return f"gives no answer to {name}: {run.problems[missing[0]]}"

    def _wild(self, run: StageRun, precision: str) -> str:
        """Return why a stage does not even agree with itself; empty when it does."""
        limit = budget_for(precision, self._settings.budgets).worst
        for spread, where in ((run.spread, "in one process"), (run.spread_fresh, "started anew")):
            if spread is not None and spread > limit:
                size = "wholly" if math.isinf(spread) else f"by {spread:.2g} x rms"
                return f"the same inputs give other answers {where}, {size}{self._culprits()}"
        return ""

    def _culprits(self) -> str:
        program = self._parts.program
        if program and program.training:
            return f"; it was exported in training mode ({', '.join(program.training)})"
        if program and program.random:
            return f"; it holds random ops ({', '.join(program.random)})"
        return ""

    def _told(self, run: StageRun) -> tuple[str, ...]:
        notes = list(run.notes)
        if run.printed > _LOUD:
            notes.append(f"it prints {run.printed / 1e6:.0f} MB")
        if run is self._bottom:
            notes += [f"{name} is the same for all inputs" for name in self._same]
        return tuple(notes)


def _overall(
    rungs: Sequence[Rung],
    notes: Sequence[SetNote],
    compared: int,
    settings: Settings,
    facts: Mapping[str, str],
) -> tuple[Status, str, str | None]:
    bad = [rung for rung in rungs if rung.status in _ORDER[1:]]
    worst = max((rung.status for rung in bad), key=_ORDER.index, default=Status.PASS)
    broken = bad[0].stage if bad else None
    refused = [
        rung
        for rung in rungs
        if rung.status is Status.UNSUPPORTED and rung.stage in settings.stages
    ]
    sentence = sentence_of(rungs, bad)
    problem = facts.get("export_problem")
    if problem:
        told = f"the layer cannot be exported: {problem}"
        return Status.CRASH, f"{told}; {sentence}" if bad else told, broken
    if bad:
        return worst, sentence, broken
    if compared < 2:
        why = "nothing was compared: fewer than two stages gave answers"
        only = all(rung.status is Status.UNSUPPORTED for rung in rungs)
        return (Status.UNSUPPORTED if only else Status.FAIL), why, None
    if not any(note.speaks for note in notes):
        return Status.FAIL, f"nothing was shown: every input set {_silence(notes)}", None
    if refused:
        told = f"{refused[0].stage} was asked for and cannot run here: {refused[0].reason}"
        return Status.UNSUPPORTED, told, None
    return Status.PASS, sentence, None


def _silence(notes: Sequence[SetNote]) -> str:
    told = {note.note for note in notes}
    return told.pop() if len(told) == 1 else "says nothing"


def _resolution(
    parts: LadderParts, notes: Sequence[SetNote], settings: Settings
) -> tuple[float | None, str]:
    """Return the smallest fault that would have been seen in the output that hides it best."""
    budget = 10 ** (-budget_for("float32", settings.budgets).warn_db / 20)
    best: dict[str, float] = {}
    for (number, name), floor in parts.noise.floors.items():
        if number < len(notes) and notes[number].speaks:
            seen = min(max(budget, floor.rms), noise_factor(1000) * floor.rms)
            best[name] = min(best.get(name, math.inf), seen)
    if not best:
        return budget, "every output"
    name = max(best, key=lambda item: best[item])
    return best[name], name
