"""Show the steps that a config makes in a mode, and run nothing.

As a table, as JSON, or as a script that can be pasted into a shell.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.cli.run_options import add_choices
from tipcheck.errors import EXIT_GOOD

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tipcheck.config_plans import Plan, Step

_STEP_WIDTH = 24
"""Columns for the name of a step; the rest is for its command."""

MODES = (
    "lite_train_lite_infer",
    "lite_train_whole_infer",
    "whole_train_whole_infer",
    "whole_infer",
    "klquant_whole_infer",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``tipcheck plan``."""
    add = parser.add_argument
    add(
        "configs",
        nargs="+",
        type=Path,
        metavar="CONFIG",
        help="TIPC configs, folders or patterns of them, or plan files (.json)",
    )
    add("--mode", metavar="MODE", help=f"one of {', '.join(MODES)}; not for plan files")
    add("--as-bash", action="store_true", help="what the repo's own bash starts, defects included")
    add("--profile", metavar="P", help="read the configs with this profile")
    add_choices(add)
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="print the plan as JSON, several as a list"
    )
    form.add_argument("--shell", action="store_true", help="print a script that does the same")


def run(options: argparse.Namespace) -> int:
    """Print the plans of the configs."""
    from tipcheck.cli.config_files import config_files
    from tipcheck.cli.run import read_plans
    from tipcheck.step_runner.task import select, with_python

    read = [
        (file, plan) for file in config_files(options.configs) for plan in read_plans(file, options)
    ]
    files, plans = [file for file, _ in read], [plan for _, plan in read]
    if options.python:
        plans = [with_python(plan, options.python) for plan in plans]
    if options.only or options.skip:
        plans = select(plans, only=options.only, skip=options.skip)
    if options.as_bash:
        for file, plan in zip(files, plans, strict=True):
            if file.suffix != ".json":
                _warn_of_gaps(file, plan.profile)
    if options.json:
        _print_json(plans)
    elif options.shell:
        from tipcheck.cli.config_files import repo_of

        roots = [repo_of([file]) for file in files]
        sys.stdout.write(shell_script(list(zip(plans, roots, strict=True))))
    else:
        for plan in plans:
            _print_table(plan)
    return EXIT_GOOD


def _print_json(plans: Sequence[Plan]) -> None:
    """Print one plan as it is, several as a list; both can be given to ``tipcheck run``."""
    from tipcheck import wire

    if len(plans) == 1:
        sys.stdout.write(wire.dumps(plans[0]) + "\n")
        return
    listed = [wire.to_builtins(plan) for plan in plans]
    sys.stdout.write(json.dumps(listed, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _warn_of_gaps(path: Path, profile: str) -> None:
    """Say on the error output that the bash reads a config whose lines are shifted."""
    from tipcheck.config_plans.layout import gaps
    from tipcheck.config_plans.profile import load
    from tipcheck.config_plans.text import read

    for gap in gaps(read(path), load(profile)):
        sys.stderr.write(f"{path}:{gap.number}: warning: {gap.describe()}; the bash goes on\n")


def shell_script(plans: Sequence[tuple[Plan, Path]]) -> str:
    """Return a script that runs the steps one after the other and stops at the first failure.

    Args:
        plans: each with the folder that its steps start in.
    """
    lines = ["#!/bin/sh", "set -eu"]
    for plan, root in plans:
        lines += [
            "",
            f"# {_comment(plan.config)}, {plan.mode}, profile {plan.profile}",
            f"cd {shlex.quote(str(root))}",
        ]
        for step in plan.steps:
            lines += ["", f"# {_comment(step.id)}", *_correction_lines(step), _shell_step(step)]
    return "\n".join(lines) + "\n"


def _shell_step(step: Step) -> str:
    removed = [f"-u {shlex.quote(name)}" for name, value in step.env.items() if value is None]
    values = [f"{name}={shlex.quote(v)}" for name, v in step.env.items() if v is not None]
    command = " ".join(
        _with_pattern(word) if place in step.patterns else shlex.quote(word)
        for place, word in enumerate(step.argv)
    )
    if removed or values:
        command = " ".join(["env", *removed, *values, command])
    if step.cwd != ".":
        command = f"cd {shlex.quote(step.cwd)} && {command}"
    log = shlex.quote(step.log)
    return f'mkdir -p -- "$(dirname -- {log})"\n({command}) > {log} 2>&1'


def _with_pattern(word: str) -> str:
    """Return a word quoted but for what makes it a file pattern."""
    parts = re.split(r"([*?\[\]]+)", word)
    return "".join(part if n % 2 or not part else shlex.quote(part) for n, part in enumerate(parts))


def _correction_lines(step: Step) -> list[str]:
    return [f"#   {note.rule}: {_comment(note.detail)}" for note in step.corrections]


def _comment(text: str) -> str:
    return " ".join(text.split())


def _print_table(plan: Plan) -> None:
    from rich.table import Table
    from rich.text import Text

    from tipcheck.config_plans.text import visible
    from tipcheck.report.terminal import terminal

    console = terminal()
    title = f"{plan.model_name or plan.config} · {plan.mode} · profile {plan.profile}"
    table = Table(title=Text(visible(title)), title_justify="left", show_lines=True)
    table.add_column("step", overflow="fold", max_width=_STEP_WIDTH)
    table.add_column("GPU", overflow="fold")
    table.add_column("command", overflow="fold", ratio=1)
    group = ""
    for step in plan.steps:
        here, _, name = step.id.rpartition("/")
        if here != group:
            table.add_row("", "", Text(visible(here), style="name"))
            group = here
        where = "" if step.cwd == "." else f"(in {step.cwd}) "
        command = Text(visible(where + shlex.join(step.argv)))
        rules = dict.fromkeys(note.rule for note in step.corrections)
        if rules:
            command.append(f"\nput right: {', '.join(rules)}", style="quiet")
        table.add_row(Text(visible(name)), Text(",".join(step.gpus) or "-"), command)
    console.print(table)
    if not plan.steps:
        console.print("This chain starts nothing in this mode.")
