"""Runs plans: decides for each step whether it runs, hands it to an engine, keeps the ledger.

The same command given again continues a run that did not finish: what passed stays passed, the rest
runs. A finished run starts anew, unless ``resume`` asks to skip what passed. In both cases a pass
counts only while nothing that the step depends on has changed and no step that it needs ran again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.step_runner.contract import End, Engine, Job
from tipcheck.step_runner.ending import to_result
from tipcheck.step_runner.fingerprint import (
    OWN,
    Fingerprint,
    Fingerprinter,
    Part,
    digest,
    what_changed,
    written_by,
)
from tipcheck.step_runner.gold import Gold, compare
from tipcheck.step_runner.hold import hold
from tipcheck.step_runner.interruption import Interruption
from tipcheck.step_runner.ledger import Ledger
from tipcheck.step_runner.link import Holdings
from tipcheck.step_runner.local import LocalEngine, read_journal
from tipcheck.step_runner.outcome import Outcome, StepResult
from tipcheck.step_runner.patterns import argv_now
from tipcheck.step_runner.records import Finish, NewRun, Pass, Start, Where
from tipcheck.step_runner.schedule import Node, Schedule
from tipcheck.step_runner.settings import ALL_STAGES, Ran, Settings
from tipcheck.step_runner.task import Task, is_inference, is_quantised_export, make_tasks
from tipcheck.step_runner.warm import WarmEngine
from tipcheck.step_runner.watcher import Beginning, Watcher

if TYPE_CHECKING:
    from tipcheck.config_plans import Plan

STATE_FOLDER = ".tipcheck"
"""Folder inside the output folder that holds the ledger and the lock."""

_TICK = 0.1


EngineMaker = Callable[[Path, int], AbstractContextManager[Engine]]
"""Makes an engine from the journal's path and the lock's descriptor."""


def make_local(journal: Path, descriptor: int) -> LocalEngine:
    """Make the engine ``local``."""
    return LocalEngine(Holdings(journal, descriptor))


def make_warm(journal: Path, descriptor: int) -> WarmEngine:
    """Make the engine ``warm``."""
    return WarmEngine(Holdings(journal, descriptor))


def run_plans(
    plans: Sequence[Plan],
    settings: Settings,
    watcher: Watcher,
    engine_maker: EngineMaker = make_local,
) -> Ran:
    """Run plans to their end, or until a signal asks to stop.

    Args:
        plans: what to run, after selection of stages.
        settings: how.
        watcher: is told what happens.
        engine_maker: makes the engine.

    Raises:
        UsageError: a plan that cannot be run.
        ToolError: the folder is held by another run, or the machine cannot do it.
    """
    tasks = make_tasks(plans, settings.root)
    state = settings.output / STATE_FOLDER
    with ExitStack() as stack:
        descriptor = stack.enter_context(hold(state / "lock"))
        ledger = stack.enter_context(Ledger(state / "ledger.sqlite"))
        run = _Run(tasks, settings, watcher, ledger)
        journal = state / "ends.jsonl"
        run.recover(journal)
        run.begin()
        interruption = stack.enter_context(Interruption())
        with engine_maker(journal, descriptor) as engine:
            run.drive(engine, interruption)
        ran = run.end(interruption.name)
        journal.unlink(missing_ok=True)
    watcher.ended(ran.results)
    return ran


class _Run:
    """One run in progress."""

    def __init__(
        self, tasks: Sequence[Task], settings: Settings, watcher: Watcher, ledger: Ledger
    ) -> None:
        self._tasks = tasks
        self._by_where = {task.where: task for task in tasks}
        self._settings = settings
        self._watcher = watcher
        self._ledger = ledger
        slots = settings.one_machine
        nodes = [Node(task.needs, frozenset(task.step.gpus if slots else ())) for task in tasks]
        self._schedule = Schedule(nodes, settings.jobs)
        outputs = {settings.output.absolute(), *(task.log.parent for task in tasks)}
        self._fingerprints = Fingerprinter(settings.root, outputs)
        self._results: list[StepResult | None] = [None] * len(tasks)
        self._believed: set[int] = set()
        self._going: dict[int, tuple[Task, Fingerprint]] = {}
        self._base_env = {"PYTHONUNBUFFERED": "1", **os.environ}
        self._attempt = ledger.next_attempt()
        self._started = self._now = time.time()
        self._clock = time.monotonic()
        self._id = 0
        self._passes: Mapping[Where, Pass] = {}
        self._written: set[str] = set()
        self._continued = False

    # Beginning ---------------------------------------------------------------------------------

    def recover(self, journal: Path) -> None:
        """Write down what a killed run knew, but could not write any more."""
        ends = {end.attempt: end for end in read_journal(journal)}
        modified = journal.stat().st_mtime if ends else 0.0
        for attempt in self._ledger.open_attempts():
            end = ends.get(attempt.attempt)
            if end is None:
                self._ledger.interrupted(attempt.attempt, self._started)
                continue
            task = self._by_where.get(attempt.where)
            ended = min(attempt.started + end.seconds, modified)
            shown = task.step.log if task else attempt.log
            limit = self._limit(task) if task else None
            result = to_result(attempt.where[1], end, attempt.log, limit, shown_log=shown)
            if task:
                result = self._against_gold(task, result)
            kept = self._kept(task, result, attempt.fingerprint, ended)
            finish = Finish(attempt.where, result, ended, attempt.attempt, kept)
            self._ledger.ended(attempt.run, finish)
        journal.unlink(missing_ok=True)

    def begin(self) -> None:
        """Begin a run in the ledger, or go on with the one that the same command left."""
        keys = sorted({task.where[0] for task in self._tasks})
        stages = sorted({task.step.stage for task in self._tasks})
        command = digest([str(self._settings.root), keys, stages])
        before = self._ledger.unfinished(command)
        self._continued = before is not None
        new = NewRun(
            command=command,
            title=f"{', '.join(keys)} ({', '.join(stages)})",
            steps=[(task.where, task.step.stage) for task in self._tasks],
            started=self._started,
            pid=os.getpid(),
        )
        self._id = self._ledger.begin(new, before.id if before else None)
        wanted = [task.where for task in self._tasks]
        if self._settings.resume:
            self._passes = self._ledger.passes(None, wanted)
        elif before:
            self._passes = self._ledger.passes(before.id, wanted)
        self._written = written_by([known.fingerprint["data"] for known in self._passes.values()])
        if before:
            self._started = before.started
        self._watcher.began(
            Beginning(
                run=self._id,
                tasks=self._tasks,
                jobs=self._settings.jobs,
                continues_since=before.started if before else None,
            )
        )

    # Working -----------------------------------------------------------------------------------

    def drive(self, engine: Engine, interruption: Interruption) -> None:
        """Run until every step has ended, or an interruption has ended those that run."""
        stopping = False
        while not self._schedule.done or self._schedule.running:
            if interruption.count and not stopping:
                stopping = True
                self._schedule.abandon()
                engine.stop()
            if interruption.count > 1:
                return  # leaving the engine kills what is left
            self._settle_ready()
            self._start_all(engine)
            if self._schedule.running:
                for end in engine.wait(_TICK):
                    self._take_end(end)
            self._watcher.tick()

    def _settle_ready(self) -> None:
        """Queue the steps that may run now; settle those that need not."""
        fresh = self._schedule.newly_ready()
        while fresh:
            for number in fresh:
                task = self._tasks[number]
                why = self._why_run(task)
                if why is None:
                    self._believe(task)
                else:
                    if why:
                        self._watcher.runs_again(task, why)
                    self._schedule.queue(number)
            self._watcher.tick()
            fresh = self._schedule.newly_ready()

    def _why_run(self, task: Task) -> str | None:
        """Return None if an earlier pass counts; else why not; empty if there is none."""
        known = self._passes.get(task.where)
        if known is None:
            return ""
        for need in task.needs:
            if need not in self._believed:
                return f"{self._tasks[need].step.id} ran again"
        if not task.log.exists():
            return "its log is gone"
        stored = known.fingerprint
        data = {path: OWN if path in self._written else v for path, v in stored["data"].items()}
        return what_changed({**stored, "data": data}, self._fingerprint(task)) or None

    def _believe(self, task: Task) -> None:
        known = self._passes[task.where]
        self._believed.add(task.number)
        if known.run == self._id:
            result = known.result
        else:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(known.ended))
            reason = f"passed on {when}, nothing it depends on has changed"
            result = replace(known.result, outcome=Outcome.SKIPPED, reason=reason)
            finish = Finish(task.where, result, known.ended, fingerprint=known.fingerprint)
            self._ledger.ended(self._id, finish)
        self._results[task.number] = result
        self._schedule.finish(task.number, good=True)
        self._watcher.skipped(task, result)

    def _start_all(self, engine: Engine) -> None:
        while (number := self._schedule.next()) is not None:
            task = self._tasks[number]
            fingerprint = self._fingerprint(task)
            start = Start(self._attempt, task.where, time.time(), str(task.log), fingerprint)
            self._attempt += 1
            self._ledger.started(self._id, [start])
            self._going[start.attempt] = (task, fingerprint)
            engine.start(
                Job(
                    key=str(number),
                    argv=argv_now(task.step, task.cwd),
                    env=self._env(task),
                    cwd=str(task.cwd),
                    log=str(task.log),
                    limit=self._limit(task),
                    grace=self._settings.grace,
                    log_limit=self._settings.log_limit,
                    attempt=start.attempt,
                    chain=task.where[0],
                    gpus=tuple(task.step.gpus),
                    quantised=is_quantised_export(task),
                )
            )
            self._watcher.started(task)

    def _take_end(self, end: End) -> None:
        task, fingerprint = self._going.pop(end.attempt)
        now = time.time()
        if end.interrupted:
            self._schedule.finish(task.number, good=True)
            self._ledger.interrupted(end.attempt, now)
            return
        shown = _shown(task.log, self._settings.root)
        result = to_result(task.step.id, end, str(task.log), self._limit(task), shown_log=shown)
        result = self._against_gold(task, result)
        kept = self._kept(task, result, fingerprint.parts(), now)
        self._ledger.ended(self._id, Finish(task.where, result, now, end.attempt, kept))
        self._finish(task, result)

    def _against_gold(self, task: Task, result: StepResult) -> StepResult:
        """Return a result that also says whether an inference printed what it had to."""
        gold = self._gold(task)
        if gold is None or result.outcome is not Outcome.PASSED:
            return result
        comparison = compare(gold, task.log)
        if comparison.failure:
            return replace(result, outcome=Outcome.FAILED, reason=comparison.failure)
        note = "; ".join(filter(None, (result.note, comparison.compared)))
        return replace(result, note=note)

    def _gold(self, task: Task) -> Gold | None:
        return self._settings.gold.get(task.where[0]) if is_inference(task) else None

    def _finish(self, task: Task, result: StepResult) -> None:
        self._results[task.number] = result
        self._watcher.finished(task, result)
        good = result.outcome.is_good or (
            result.outcome is Outcome.HOLLOW and self._settings.allow_hollow
        )
        for number, need in self._schedule.finish(task.number, good=good):
            needed = self._results[need]
            how = needed.outcome.value if needed else "did not run"
            self._block(number, f"needs {self._tasks[need].step.id}: {how}")
        if not good and not self._settings.keep_going:
            for number in self._schedule.abandon():
                self._block(
                    number, f"not started, because {task.step.id} did not pass (--fail-fast)"
                )

    def _block(self, number: int, reason: str) -> None:
        task = self._tasks[number]
        log = _shown(task.log, self._settings.root)
        result = StepResult(task.step.id, Outcome.BLOCKED, reason, log=log)
        self._results[number] = result
        self._ledger.ended(self._id, Finish(task.where, result, time.time()))
        self._watcher.finished(task, result)

    # Ending ------------------------------------------------------------------------------------

    def end(self, interrupted_by: str) -> Ran:
        """Close the run in the ledger and return what came of it."""
        now = time.time()
        for attempt in self._going:
            self._ledger.interrupted(attempt, now)
        complete = all(result is not None for result in self._results)
        self._ledger.end(self._id, "finished" if complete else "interrupted", now)
        return Ran(
            run=self._id,
            tasks=self._tasks,
            results=tuple(self._results),
            started=self._started,
            seconds=time.monotonic() - self._clock,
            interrupted_by="" if complete else interrupted_by,
        )

    # Looking up --------------------------------------------------------------------------------

    def _fingerprint(self, task: Task) -> Fingerprint:
        own = {*task.step.env, *self._settings.env}
        config = self._settings.root / task.plan.config
        argv = argv_now(task.step, task.cwd)
        gold = self._gold(task)
        texts = [config, *(gold.files if gold else ())]
        return self._fingerprints.take(argv, self._env(task), own, task.cwd, texts)

    def _kept(
        self, task: Task | None, result: StepResult, parts: Mapping[str, Part], ended: float
    ) -> Mapping[str, Part] | None:
        """Return what of a step's fingerprint to keep: nothing unless it passed."""
        if result.outcome is not Outcome.PASSED:
            return None
        if task is None:
            return parts
        config = self._settings.root / task.plan.config
        argv = argv_now(task.step, task.cwd)
        data = self._fingerprints.settle(parts["data"], argv, task.cwd, config, ended)
        return {**parts, "data": data}

    def _env(self, task: Task) -> dict[str, str]:
        env = dict(self._base_env)
        for name, value in task.step.env.items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = value
        return {**env, **self._settings.env}

    def _limit(self, task: Task) -> float | None:
        limits = self._settings.limits
        return limits.get(task.step.stage, limits.get(ALL_STAGES))


def _shown(log: Path, root: Path) -> str:
    return str(log.relative_to(root) if log.is_relative_to(root) else log)
