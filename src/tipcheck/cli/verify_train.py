"""``tipcheck verify --train SOURCE``: the same training in dygraph and under to_static."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD, UsageError

if TYPE_CHECKING:
    import argparse


def run_train(options: argparse.Namespace) -> int:
    """Train both ways, show where they part, return the exit code."""
    from tipcheck.cli.verify_forms import check_seed, write_json
    from tipcheck.compare.verdict import Status
    from tipcheck.report.terminal import terminal, waiting
    from tipcheck.report.train_table import show_training
    from tipcheck.stage_ladder.train_run import Training, verify_training

    if ":" not in options.train:
        raise UsageError(
            f"--train is {options.train!r}, which names no factory",
            hint="module:factory or file.py:factory",
        )
    if options.steps < 1:
        raise UsageError(f"--steps is {options.steps}", hint="give a number of 1 or more")
    check_seed(options.seed)
    training = Training(
        source=options.train,
        path=(str(Path.cwd()),),
        steps=options.steps,
        seed=options.seed,
        rtol=1e-4 if options.rtol is None else options.rtol,
        time_limit=options.timeout or 600.0,
    )
    with waiting("training in dygraph and under to_static"):
        result = verify_training(training)
    if options.json:
        write_json(result, options.json)
    show_training(result, terminal())
    good = result.status is Status.PASS or (
        result.status is Status.SUSPECT and "suspect" in options.allow
    )
    return EXIT_GOOD if good else EXIT_CHECK_FAILED
