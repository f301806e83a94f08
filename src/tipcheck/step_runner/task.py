"""The steps of several plans as one list of tasks: checked, narrowed down, and placed on disk.

A plan is correct about its own config; only here is it seen that two plans would write one log,
that a plan was written by hand and its steps need each other in a circle, or that a stage was asked
for which no plan has.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.config_plans import Plan, Step
from tipcheck.errors import UsageError
from tipcheck.step_runner.quantised import is_meant
from tipcheck.step_runner.schedule import find_cycle

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tipcheck.step_runner.records import Where


@dataclass(frozen=True, slots=True)
class Task:
    """One step of one plan of a run.

    Attributes:
        number: its place in the run, from 0.
        plan: the plan it belongs to.
        step: the step.
        log: absolute path of its log; differs from the plan's where two steps name the same one.
        cwd: absolute working directory.
        needs: numbers of the tasks it needs.
    """

    number: int
    plan: Plan
    step: Step
    log: Path
    cwd: Path
    needs: tuple[int, ...]

    @property
    def where(self) -> Where:
        """Its place in the ledger."""
        return plan_key(self.plan), self.step.id

    @property
    def name(self) -> str:
        """What to call it where several plans are shown."""
        return f"{self.plan.model_name}: {self.step.id}"


def is_inference(task: Task) -> bool:
    """Whether a step prints predictions."""
    return "infer" in task.step.stage


def is_quantised_export(task: Task) -> bool:
    """Whether a step is there to export a quantised model: its id, config or chain says so."""
    plan = task.plan
    name = os.path.basename(plan.config)  # noqa: PTH119 - a word
    return task.step.stage == "export" and is_meant(task.step.id, name, plan.mode, plan.profile)


def plan_key(plan: Plan) -> str:
    """Return what tells a plan from all others of a run."""
    return f"{plan.config} {plan.mode}"


def select(
    plans: Sequence[Plan], *, only: Collection[str] = (), skip: Collection[str] = ()
) -> list[Plan]:
    """Return plans with only the steps of certain stages; what they need of others is dropped.

    Args:
        plans: the plans.
        only: stages to keep; empty keeps all.
        skip: stages to leave out.

    Raises:
        UsageError: a stage that no plan has, or nothing left.
    """
    stages = dict.fromkeys(step.stage for plan in plans for step in plan.steps)
    for stage in (*only, *skip):
        if stage not in stages:
            raise UsageError(f"no step has the stage {stage!r}", hint=f"there are: {_list(stages)}")
    selected = []
    for plan in plans:
        kept = [
            step
            for step in plan.steps
            if (not only or step.stage in only) and step.stage not in skip
        ]
        ids = {step.id for step in kept}
        steps = tuple(
            replace(step, needs=tuple(need for need in step.needs if need in ids)) for step in kept
        )
        selected.append(replace(plan, steps=steps))
    if stages and not any(plan.steps for plan in selected):
        raise UsageError("no step is left to run", hint=f"the stages are: {_list(stages)}")
    return selected


def with_python(plan: Plan, python: str) -> Plan:
    """Return a plan whose steps use another Python interpreter."""
    steps = tuple(
        replace(step, argv=(python, *step.argv[1:]))
        if step.argv and os.path.basename(step.argv[0]).startswith("python")  # noqa: PTH119 - a word
        else step
        for step in plan.steps
    )
    return replace(plan, steps=steps)


def make_tasks(plans: Sequence[Plan], root: Path) -> list[Task]:
    """Return the tasks of a run.

    Args:
        plans: what to run.
        root: the repo's folder, which paths in plans are relative to.

    Raises:
        UsageError: a plan that cannot be run as it is.
    """
    tasks: list[Task] = []
    keys: set[str] = set()
    logs: set[Path] = set()
    for plan in plans:
        if plan_key(plan) in keys:
            raise UsageError(f"given twice in mode {plan.mode}", where=plan.config)
        keys.add(plan_key(plan))
        numbers = {step.id: len(tasks) + place for place, step in enumerate(plan.steps)}
        _check(plan, numbers)
        for step in plan.steps:
            log = _free(Path(os.path.normpath(root / step.log)), logs)
            logs.add(log)
            tasks.append(
                Task(
                    number=len(tasks),
                    plan=plan,
                    step=step,
                    log=log,
                    cwd=Path(os.path.normpath(root / step.cwd)),
                    needs=tuple(numbers[need] for need in step.needs),
                )
            )
    return tasks


def _check(plan: Plan, numbers: dict[str, int]) -> None:
    if len(numbers) != len(plan.steps):
        ids = [step.id for step in plan.steps]
        twice = next(each for each in ids if ids.count(each) > 1)
        raise UsageError(f"two steps have the id {twice!r}", where=plan.config)
    for step in plan.steps:
        place = f"{plan.config}, step {step.id}"
        if not step.argv:
            raise UsageError("has no command", where=place)
        if not step.log:
            raise UsageError("has no log", where=place)
        for word in (step.id, step.stage, step.log, step.cwd):
            if not _is_text(word):
                raise UsageError(f"holds characters that no path can have: {word!r}", where=place)
        for need in step.needs:
            if need not in numbers:
                raise UsageError(f"needs {need!r}, which is no step of the plan", where=place)
    first = next(iter(numbers.values()), 0)
    cycle = find_cycle([[numbers[need] - first for need in step.needs] for step in plan.steps])
    if cycle:
        ids = [plan.steps[number].id for number in cycle]
        raise UsageError(f"steps need each other: {' -> '.join([*ids, ids[0]])}", where=plan.config)


def _is_text(word: str) -> bool:
    try:
        return b"\0" not in word.encode()
    except UnicodeEncodeError:  # half a character
        return False


def _free(log: Path, taken: set[Path]) -> Path:
    """Return a log's path, with a number added if another step writes it already."""
    free, number = log, 2
    while free in taken:
        free = log.with_name(f"{log.stem}_{number}{log.suffix}")
        number += 1
    return free


def _list(words: Iterable[str]) -> str:
    return ", ".join(words)
