"""Write down what a repo's own bash chain would start for a config in a mode, as a plan to run.

The plan is JSON, on the terminal or in a file; nothing real is started.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_GOOD, ToolError

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``tipcheck record``."""
    parser.add_argument("script", type=Path, metavar="SCRIPT", help="the repo's bash script")
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the config it is given")
    parser.add_argument("mode", metavar="MODE", help="the mode it is given")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the plan to this file")
    parser.add_argument(
        "--timeout", type=float, default=120, metavar="S", help="seconds the script may take (120)"
    )


def run(options: argparse.Namespace) -> int:
    """Record what the script starts."""
    from tipcheck import wire
    from tipcheck.config_plans.record import record

    plan = record(options.script, options.config, options.mode, seconds=options.timeout)
    text = wire.dumps(plan) + "\n"
    if options.out is None:
        sys.stdout.write(text)
        return EXIT_GOOD
    try:
        options.out.write_text(text, "utf-8")
    except OSError as error:
        raise ToolError(f"cannot be written ({error})", where=str(options.out)) from None
    sys.stdout.write(f"{options.out}: {len(plan.steps)} step(s)\n")
    return EXIT_GOOD
