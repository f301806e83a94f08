"""What goes into the ledger and comes out of it: a run, a start, an end, a pass that may count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tipcheck.step_runner.fingerprint import Fingerprint, Part
from tipcheck.step_runner.outcome import StepResult

Where = tuple[str, str]
"""A step of a run: the key of its plan, and its id in there."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A step that passed: what is needed to decide whether that still counts.

    Attributes:
        run: the run in which it passed.
        result: how it ended.
        ended: when.
        fingerprint: the parts of what it depended on.
    """

    run: int
    result: StepResult
    ended: float
    fingerprint: Mapping[str, Part]


@dataclass(frozen=True, slots=True)
class Start:
    """An attempt at a step: its number, and what the step depended on when it began."""

    attempt: int
    where: Where
    started: float
    log: str
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a run begins with.

    Attributes:
        command: what makes two runs the same command.
        title: the command in words.
        steps: each step's place and stage, in order.
        started: when it begins.
        pid: of the process that runs it.
    """

    command: str
    title: str
    steps: Sequence[tuple[Where, str]]
    started: float
    pid: int


@dataclass(frozen=True, slots=True)
class Finish:
    """How a step of a run ended.

    Attributes:
        where: the step.
        result: how it ended.
        ended: when.
        attempt: number of its attempt; 0 for a step that did not start.
        fingerprint: what it depended on, if it passed.
    """

    where: Where
    result: StepResult
    ended: float
    attempt: int = 0
    fingerprint: Mapping[str, Part] | None = None


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt that a killed tool could not write the end of."""

    attempt: int
    run: int
    where: Where
    started: float
    log: str
    fingerprint: Mapping[str, Part]


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the ledger knows it; ``state`` is ``running``, ``interrupted`` or ``finished``."""

    id: int
    command: str
    title: str
    started: float
    ended: float | None
    state: str
    pid: int
