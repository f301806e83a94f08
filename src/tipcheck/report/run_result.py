"""A whole run as one contract: what ``results.json`` holds and every other report is made from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tipcheck.report.run_autolog import AutoLog, parse_autolog
from tipcheck.report.run_hints import find_hint
from tipcheck.step_runner.outcome import Outcome
from tipcheck.step_runner.reason import tail_of

if TYPE_CHECKING:
    from tipcheck.step_runner.outcome import StepResult
    from tipcheck.step_runner.settings import Ran
    from tipcheck.step_runner.task import Task

_HINT_WINDOW = 8 * 1024
WITH_LOG = (Outcome.FAILED, Outcome.CRASHED, Outcome.TIMED_OUT)
"""Outcomes whose cause stands at the end of the log."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step of a run, complete in itself.

    Attributes:
        config: the config's path.
        mode: the plan's mode.
        model_name: the model the config is about.
        step: id of the step in its plan.
        stage: its stage.
        outcome: how it ended; None when an interruption left it without an end.
        reason: why, in one line.
        hint: the known cause and what to type, or an empty text.
        command: the command, quoted so that a shell would read it back.
        env: the variables its plan sets.
        exit_code, signal, seconds, peak_memory_bytes, log, note: see ``StepResult``.
        autolog: what an inference step measured about itself.
        profile: the profile that read the config.
    """

    config: str
    mode: str
    model_name: str
    step: str
    stage: str
    outcome: Outcome | None
    reason: str = ""
    hint: str = ""
    command: str = ""
    env: Mapping[str, str | None] = field(default_factory=dict)
    exit_code: int | None = None
    signal: str | None = None
    seconds: float = 0.0
    peak_memory_bytes: int | None = None
    log: str = ""
    note: str = ""
    autolog: AutoLog | None = None
    profile: str = ""


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run, as it is written to ``results.json``.

    Attributes:
        run: its number in the output folder's ledger.
        started: when it began, in UTC.
        seconds: how long the last command took.
        good: whether everything that had to pass did.
        interrupted_by: name of the signal that ended it early, or an empty text.
        counts: steps by outcome.
        steps: every step, in the order of the plans.
    """

    schema: ClassVar[str] = "tipcheck.run/1"

    run: int
    started: str
    seconds: float
    good: bool
    interrupted_by: str
    counts: Mapping[str, int]
    steps: tuple[StepReport, ...]


def make_report(ran: Ran, root: Path, *, allow_hollow: bool = False) -> RunReport:
    """Return the report of a run that is over.

    Args:
        ran: the run.
        root: the repo's folder, which log paths are relative to.
        allow_hollow: whether hollow steps count as good.
    """
    steps = tuple(
        _report_step(task, result, root)
        for task, result in zip(ran.tasks, ran.results, strict=True)
    )
    counts: dict[str, int] = {}
    for step in steps:
        word = step.outcome.value if step.outcome else "not run"
        counts[word] = counts.get(word, 0) + 1
    return RunReport(
        run=ran.run,
        started=datetime.fromtimestamp(ran.started, timezone.utc).isoformat(timespec="seconds"),
        seconds=round(ran.seconds, 3),
        good=all(is_good(step.outcome, allow_hollow=allow_hollow) for step in steps),
        interrupted_by=ran.interrupted_by,
        counts=counts,
        steps=steps,
    )


def is_good(outcome: Outcome | None, *, allow_hollow: bool) -> bool:
    """Whether an outcome lets the run be good."""
    return outcome is not None and (outcome.is_good or (allow_hollow and outcome is Outcome.HOLLOW))


def command_line(argv: Sequence[str]) -> str:
    """Return a command on one line, quoted."""
    return shlex.join(argv).replace("\n", "\\n").replace("\r", "\\r")


def _report_step(task: Task, result: StepResult | None, root: Path) -> StepReport:
    known = StepReport(
        config=task.plan.config,
        mode=task.plan.mode,
        model_name=task.plan.model_name,
        step=task.step.id,
        stage=task.step.stage,
        outcome=None,
        command=command_line(task.step.argv),
        env=task.step.env,
        profile=task.plan.profile,
    )
    if result is None:
        return known
    log = root / result.log if result.log else Path()
    hint = ""
    if result.outcome in WITH_LOG:
        hint = find_hint(f"{result.reason}\n{result.note}", tail_of(log, _HINT_WINDOW))
    autolog = None
    if result.outcome.is_good and result.log and "infer" in task.step.stage:
        autolog = parse_autolog(tail_of(log))
    return replace(
        known,
        outcome=result.outcome,
        reason=result.reason,
        hint=hint,
        exit_code=result.exit_code,
        signal=result.signal,
        seconds=round(result.seconds, 3),
        peak_memory_bytes=result.peak_memory_bytes,
        log=result.log,
        note=result.note,
        autolog=autolog,
    )
