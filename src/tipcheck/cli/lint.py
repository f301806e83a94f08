"""List every problem of some configs, with the line and what to write instead.

One line per finding, or JSON; exit code 1 when one of them is an error.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``tipcheck lint``."""
    parser.add_argument(
        "configs",
        type=Path,
        nargs="+",
        metavar="CONFIG",
        help="config files, folders of them, patterns in quotes",
    )
    parser.add_argument("--profile", metavar="P", help="read the configs with this profile")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(options: argparse.Namespace) -> int:
    """Print what is wrong in the configs."""
    from tipcheck.cli.config_files import config_files
    from tipcheck.config_plans.lint import Findings, lint
    from tipcheck.config_plans.text import visible

    configs = config_files(options.configs)
    found = Findings(
        tuple(finding for config in configs for finding in lint(config, profile=options.profile))
    )
    if options.json:
        from tipcheck import wire

        sys.stdout.write(wire.dumps(found) + "\n")
    else:
        for finding in found.findings:
            place = finding.file if finding.line is None else f"{finding.file}:{finding.line}"
            told = f"{place}: {finding.level}: {finding.message} [{finding.rule}]"
            sys.stdout.write(visible(told) + "\n")
            if finding.suggestion:
                sys.stdout.write(f"    {visible(finding.suggestion)}\n")
        counts = f"{found.errors} error(s), {len(found.findings) - found.errors} other finding(s)"
        sys.stdout.write(f"{counts} in {len(configs)} config(s)\n")
    return EXIT_CHECK_FAILED if found.errors else EXIT_GOOD
