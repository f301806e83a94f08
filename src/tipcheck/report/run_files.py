"""Writes a run's files: ``results.json``, the status lines, and JUnit XML when asked for.

The next run replaces ``results.json``, whatever it runs. So that the last results of every config
are kept, each plan's part of it is also written beside the logs of that plan.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck import wire
from tipcheck.errors import ToolError
from tipcheck.report.run_junit import junit_xml
from tipcheck.report.run_result import is_good
from tipcheck.report.run_status import by_plan, write_status

if TYPE_CHECKING:
    from tipcheck.report.run_result import RunReport

RESULTS = "results.json"
EVERY_RESULTS = "results*.json"
"""Pattern of the whole run's file and of those of its plans."""


def write_files(
    report: RunReport,
    root: Path,
    output: Path,
    *,
    style: str | None,
    junit: Path | None = None,
    allow_hollow: bool = False,
) -> None:
    """Write the files of a run.

    Args:
        report: the run.
        root: the repo's folder, which log paths are relative to.
        output: folder of ``results.json``.
        style: generation of the status lines; None takes each repo's own.
        junit: file for JUnit XML, or None.
        allow_hollow: whether hollow steps count as good.

    Raises:
        ToolError: a file cannot be written.
    """
    try:
        _replace(output / RESULTS, wire.dumps(report) + "\n")
        write_status(report, root, style, allow_hollow=allow_hollow)
        for folder, steps in by_plan(report):
            part = replace(
                report,
                good=all(is_good(step.outcome, allow_hollow=allow_hollow) for step in steps),
                counts=Counter(step.outcome.value for step in steps if step.outcome),
                steps=tuple(steps),
            )
            name = f"results_{Path(steps[0].config).stem}.json"
            _replace(root / folder / name, wire.dumps(part) + "\n")
        if junit is not None:
            junit.parent.mkdir(parents=True, exist_ok=True)
            _replace(junit, junit_xml(report, root, allow_hollow=allow_hollow))
    except OSError as error:
        raise ToolError(
            f"cannot write: {error.strerror}",
            where=str(error.filename or output),
            hint="make room or choose another place; the ledger has the results",
        ) from None


def _replace(path: Path, text: str) -> None:
    """Write a file so that a reader never sees half of it."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, "utf-8", "backslashreplace")
    os.replace(part, path)  # noqa: PTH105 - Path.replace returns a path nobody needs
