"""Put known faults between two stages of a real model and say how many `verify` finds.

Kind, place and size of every fault are drawn from the seed; sizes are 1, 3, 10 and 100 times the
noise floor of the model, and the fault as it is. Runs without a fault show whether there is a
false alarm. The exit code is 1 when less than 99 % of the faults at 10 noise floors or more are
found, when the wrong rung is blamed, or when there is an alarm without a fault.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD, ToolError, UsageError

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("--seed", type=int, default=0, help="what everything is drawn from (default: 0)")
    add("--faults", type=int, default=240, metavar="N", help="how many faults (default: 240)")
    add("--clean", type=int, default=50, metavar="N", help="models, and runs without a fault")
    add("--json", type=Path, metavar="FILE", help="write every fault and its outcome as JSON")


def run(options: argparse.Namespace) -> int:
    """Run the self-test, show the rates, and return the exit code."""
    if options.faults < 1 or options.clean < 1 or options.seed < 0:
        raise UsageError("--faults and --clean are counts, --seed is not negative")
    from tipcheck import wire
    from tipcheck.report.selftest import show_selftest
    from tipcheck.report.terminal import waiting
    from tipcheck.stage_ladder.selftest import selftest

    with waiting("importing Paddle") as say:
        result = selftest(options.seed, options.faults, options.clean, say)
    show_selftest(result)
    if options.json is not None:
        try:
            options.json.write_text(wire.dumps(result) + "\n", encoding="utf-8")
        except OSError as error:
            raise ToolError(f"cannot write ({error.strerror})", where=str(options.json)) from None
    return EXIT_GOOD if result.good else EXIT_CHECK_FAILED
