"""Say what this machine can run: Python, Paddle, the CPU, GPUs, and every way of running a model.

Each way is tried on a small model in a process of its own; what is not there comes with the reason
and with what to do to get it. Exits with 1 when Paddle itself does not work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD, UsageError

if TYPE_CHECKING:
    import argparse


LONGEST = 1e6
"""Seconds; what is longer overflows the clock of a wait, and nobody means it."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--time-limit",
        type=float,
        default=180.0,
        metavar="SECONDS",
        help="when a trial counts as hanging (default: 180)",
    )


def run(options: argparse.Namespace) -> int:
    """Examine the machine and show what was found."""
    if not 0.0 < options.time_limit < LONGEST:
        raise UsageError(
            f"--time-limit is {options.time_limit:g}", hint="give seconds, such as --time-limit 60"
        )
    from tipcheck.backends.doctor.examine import diagnose
    from tipcheck.report.terminal import waiting

    with waiting("looking at this machine") as say:
        diagnosis = diagnose(time_limit=options.time_limit, say=say)
    if options.json:
        from tipcheck import wire

        print(wire.dumps(diagnosis))
    else:
        from tipcheck.report.diagnosis import show_diagnosis

        show_diagnosis(diagnosis)
    works = diagnosis.paddle is not None and diagnosis.paddle.works
    return EXIT_GOOD if works else EXIT_CHECK_FAILED
