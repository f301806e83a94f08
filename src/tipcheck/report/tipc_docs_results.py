"""The results of runs as the documents need them: the one source of every number they print."""

from __future__ import annotations

import os
from pathlib import Path

from tipcheck import wire
from tipcheck.errors import UsageError
from tipcheck.report.run_result import RunReport, StepReport


def read_results(path: Path) -> RunReport:
    """Read a ``results.json``.

    Raises:
        UsageError: there is no such file, or it holds no results.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot be read: {error.strerror}",
            where=str(path),
            hint="tipcheck run writes it as test_tipc/output/results.json",
        ) from None
    return wire.loads(text, RunReport, source=str(path))


def steps_of(run: RunReport, config: str, root: Path) -> tuple[StepReport, ...]:
    """Return the steps of a config.

    Args:
        run: a run of it or of others.
        config: its path relative to the repo.
        root: the repo's folder.
    """
    wanted = os.path.normpath(config)
    return tuple(step for step in run.steps if _relative(step.config, root) == wanted)


def _relative(config: str, root: Path) -> str:
    path = os.path.normpath(config)
    if not Path(path).is_absolute():
        return path
    for base in (os.path.abspath(root), os.path.realpath(root)):  # noqa: PTH100 - links matter
        if path.startswith(base + os.sep):
            return os.path.relpath(path, base)
    return path
