"""How a run is to go, and what is known of it when it is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tipcheck.step_runner.contract import DEFAULT_GRACE, DEFAULT_LOG_LIMIT
from tipcheck.step_runner.gold import Gold
from tipcheck.step_runner.outcome import StepResult
from tipcheck.step_runner.task import Task

ALL_STAGES = "*"
"""Stands in ``Settings.limits`` for every stage that has no limit of its own."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run.

    Attributes:
        root: the repo's folder; paths in plans are relative to it.
        output: folder of the ledger.
        jobs: steps at a time.
        limits: seconds a step may run, by stage; ``*`` stands for all others.
        env: variables set for every step, stronger than those of its plan.
        keep_going: whether to start steps after one has not passed.
        resume: whether a finished run's passes count too.
        allow_hollow: whether the steps that need a hollow one may start.
        one_machine: whether two steps that name the same GPU mean the same one; if not, the
            engine sees to it that they have one each.
        grace: seconds between SIGTERM and SIGKILL.
        log_limit: bytes of output that one log keeps.
        gold: what the inference of a plan has to print, by the plan's key.
    """

    root: Path
    output: Path
    jobs: int = 1
    limits: Mapping[str, float] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    keep_going: bool = True
    resume: bool = False
    allow_hollow: bool = False
    one_machine: bool = True
    grace: float = DEFAULT_GRACE
    log_limit: int = DEFAULT_LOG_LIMIT
    gold: Mapping[str, Gold] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that is over.

    Attributes:
        run: its number in the ledger.
        tasks: all its steps.
        results: how each ended; None for those an interruption left without an end.
        started: when it began; a continued run keeps its beginning.
        seconds: how long this command took.
        interrupted_by: name of the signal that ended it early, or an empty text.
    """

    run: int
    tasks: Sequence[Task]
    results: Sequence[StepResult | None]
    started: float
    seconds: float
    interrupted_by: str
