"""The status lines that the bash chains have written, so that existing scripts can read ours.

Three generations are in use; each adds a field. Which one a repo's scripts expect is known from the
profile that read its config. Readers split a line at `` - ``, so a command that
holds this is written with the blanks around the dash doubled away. One line per step, success or
failure, in ``results_python.log`` beside the logs of the plan. Unlike the bash, which only ever
appends, a step's older line is replaced, so that a failure that was put right is gone.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING

from tipcheck.report.run_result import RunReport, StepReport, is_good

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FILE_NAME = "results_python.log"
FORMATS: dict[str, str] = {
    "2021": "\033[33m Run {how} with command - {command}!  \033[0m",
    "2022-05": "\033[33m Run {how} with command - {model} - {command}!  \033[0m",
    "2022-08": "\033[33m Run {how} with command - {model} - {command} - {log} \033[0m",
}
"""By the time from which the model suites used them."""

NEWEST = "2022-08"
_OLDEST = ("tutorial-log", "tutorial-oldest", "parl", "paddle3d", "speech", "can", "dabnet",
           "dncnn", "encnet", "lmf", "nafnet", "rd4ad", "realesrgan")  # fmt: skip
_MIDDLE = ("tutorial", "tipcheck", "ptq", "rs", "medicalseg")
GENERATIONS = {**dict.fromkeys(_OLDEST, "2021"), **dict.fromkeys(_MIDDLE, "2022-05")}
"""Of the profiles whose repos have not taken over the newest format."""

FILE_NAMES = {"rec": "results.log"}
"""Of the profiles whose repos do not call it ``results_python.log``."""


def style_of(step: StepReport) -> str:
    """Return the generation of status lines that the repo of a step uses."""
    return GENERATIONS.get(step.profile, NEWEST)


def status_line(step: StepReport, style: str, *, allow_hollow: bool = False) -> str:
    """Return the status line of a step in one of the ``FORMATS``."""
    how = "successfully" if is_good(step.outcome, allow_hollow=allow_hollow) else "failed"
    command = step.command.replace(" - ", " -")
    return FORMATS[style].format(how=how, model=step.model_name, command=command, log=step.log)


def write_status(
    report: RunReport, root: Path, style: str | None = None, *, allow_hollow: bool = False
) -> list[Path]:
    """Write the status lines of a run and return the files.

    Args:
        report: the run.
        root: the repo's folder, which log paths are relative to.
        style: one of ``FORMATS``; None takes each repo's own.
        allow_hollow: whether hollow steps count as good.
    """
    new: dict[Path, list[StepReport]] = defaultdict(list)
    for folder, steps in by_plan(report):
        new[root / folder / FILE_NAMES.get(steps[0].profile, FILE_NAME)] += steps
    for path, steps in new.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            status_line(step, style or style_of(step), allow_hollow=allow_hollow) for step in steps
        ]
        kept = _older_lines(path, steps)
        path.write_text("".join(f"{line}\n" for line in [*kept, *lines]), "utf-8", "replace")
    return list(new)


def by_plan(report: RunReport) -> list[tuple[str, list[StepReport]]]:
    """Return the steps of each plan that ended, with the folder of their logs."""
    plans: dict[tuple[str, str], list[StepReport]] = defaultdict(list)
    for step in report.steps:
        if step.outcome is not None:
            plans[step.config, step.mode].append(step)
    placed = [(_folder_of(steps), steps) for steps in plans.values()]
    return [(folder, steps) for folder, steps in placed if folder is not None]


def _folder_of(steps: Iterable[StepReport]) -> str | None:
    folders = [os.path.dirname(step.log) for step in steps if step.log]  # noqa: PTH120 - texts
    try:
        return os.path.commonpath(folders) if folders else None
    except ValueError:  # some in the repo, some elsewhere
        return folders[0]


def _older_lines(path: Path, steps: Iterable[StepReport]) -> list[str]:
    """Return what a status file holds about other commands than these, in any generation."""
    try:
        old = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    known = {_identity(status_line(step, style)) for step in steps for style in FORMATS}
    return [line for line in old if _identity(line) not in known]


def _identity(line: str) -> str:
    return line.partition(" with command - ")[2]
