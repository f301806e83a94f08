"""Run the repo's own test_tipc/prepare.sh for a config, and believe its failure.

The script stops at the first command that fails where nothing in the script looks at the failure,
and the command and its line are named. Commands that fail only because their work was done before
(a link or folder that is there, a download that wget -nc leaves alone) do not stop it.
Exit codes: 0 it worked; 1 it failed or took too long; 2 wrong usage; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD, UsageError

if TYPE_CHECKING:
    import argparse

    from tipcheck.step_runner.prepare import Preparation, Prepared


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``tipcheck prepare``."""
    parser.add_argument("config", type=Path, metavar="CONFIG", help="a TIPC config file")
    parser.add_argument("mode", metavar="MODE", help="such as lite_train_lite_infer")
    parser.add_argument(
        "arguments", nargs="*", metavar="ARG", help="what else the script takes, passed on"
    )
    parser.add_argument(
        "--script", type=Path, metavar="FILE", help="(default: test_tipc/prepare.sh of the repo)"
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="go on after failures as bash does; only the script's own exit code counts",
    )
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="end it after this time")
    parser.add_argument(
        "--grace",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="from SIGTERM to SIGKILL (default: %(default)g)",
    )
    parser.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="(default: test_tipc/output/prepare/CONFIG-MODE.log of the repo)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the script and say how it ended."""
    from tipcheck.step_runner.prepare import prepare

    what = _preparation(options)
    told = prepare(what, _show)
    for failure in told.passed_over:
        sys.stdout.write(f"went on after {failure}: done before\n")
    log = os.path.relpath(what.log)
    if told.good:
        sys.stdout.write(f"prepared; log: {log}\n")
        return EXIT_GOOD
    sys.stdout.write(f"{_reason(told, what)}; log: {log}\n")
    return EXIT_CHECK_FAILED


def _preparation(options: argparse.Namespace) -> Preparation:
    from tipcheck.config_plans.find import root_of
    from tipcheck.config_plans.lint_lines import MODES
    from tipcheck.step_runner.prepare import Preparation

    config = Path(os.path.abspath(options.config))  # noqa: PTH100 - resolve() would follow links
    if not config.is_file():
        raise UsageError("no such config", where=str(options.config), hint="check the path")
    if options.mode not in MODES:
        raise UsageError(
            f"no mode {options.mode!r}; the script would do nothing and end well",
            where=str(options.config),
            hint=f"write one of {', '.join(sorted(MODES))}",
        )
    for name in ("timeout", "grace"):
        value = getattr(options, name)
        if value is not None and not 0 <= value < float("inf"):
            raise UsageError(f"--{name} is {value:g}", hint="give a number of seconds")
    root = root_of(config)
    script = (options.script or root / "test_tipc" / "prepare.sh").absolute()
    if not script.is_file():
        raise UsageError(
            "no such script",
            where=str(script),
            hint="name it with --script, or make one with tipcheck init",
        )
    log = options.log or Path(
        root, "test_tipc", "output", "prepare",
        f"{config.parent.name}-{config.stem}-{options.mode}.log",
    )  # fmt: skip
    shown = [
        path.relative_to(root) if path.is_relative_to(root) else path for path in (script, config)
    ]
    return Preparation(
        script=shown[0],
        arguments=[str(shown[1]), options.mode, *options.arguments],
        root=root,
        log=log.absolute(),
        lenient=options.lenient,
        timeout=options.timeout,
        grace=options.grace,
    )


def _show(piece: bytes) -> None:
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _reason(told: Prepared, what: Preparation) -> str:
    if told.timed_out:
        return f"not prepared: ended after its time limit of {what.timeout:g} s"
    if told.failure is not None:
        return f"not prepared: {told.failure} failed; --lenient goes on after failures"
    if told.exit_code < 0:
        import signal

        return f"not prepared: {what.script} died on {signal.Signals(-told.exit_code).name}"
    return f"not prepared: {what.script} ended with exit code {told.exit_code}"
