"""The options of ``tipcheck run``: what they are called, and the settings that they ask for."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from tipcheck.config_plans import Plan
    from tipcheck.step_runner.gold import Gold
    from tipcheck.step_runner.settings import Settings

DEFAULT_OUTPUT = Path("test_tipc") / "output"
_STATUS_FORMATS = ("2021", "2022-05", "2022-08")
_SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "configs",
        nargs="+",
        type=Path,
        metavar="CONFIG",
        help="TIPC configs, folders or patterns of them, or plan files (.json) as "
        "`tipcheck plan --json` prints them",
    )
    parser.add_argument("--mode", help="such as lite_train_lite_infer; not for plan files")
    parser.add_argument("--profile", help="how to read the configs, if it cannot be seen")
    parser.add_argument(
        "--as-bash", action="store_true", help="run what the repo's own bash would, defects and all"
    )
    _configure_choice(parser)
    _configure_way(parser)
    _configure_reports(parser)


def add_choices(add: Callable[..., object]) -> None:
    """Add the options that choose what a plan holds; ``plan`` has them as well."""
    add("--only", action="append", default=[], metavar="STAGE", help="this stage; repeatable")
    add("--skip", action="append", default=[], metavar="STAGE", help="not this one; repeatable")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="give the line of this key, name or number another value; repeatable",
    )
    add(
        "--device", metavar="D", help="cpu, cpu:2 (processes) or gpu:0,1, whatever the config names"
    )
    add("--epochs", type=int, metavar="N", help="train this many epochs, whatever the config says")
    add("--python", metavar="PATH", help="interpreter to use instead of the config's")


def _configure_choice(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("what runs").add_argument
    add_choices(add)
    add("--resume", action="store_true", help="skip what passed before and has not changed")
    add(
        "--env",
        action="append",
        default=[],
        metavar="K=V",
        help="set a variable for every step; repeatable",
    )
    add(
        "--legacy-ir",
        action="store_true",
        help="export .pdmodel files on Paddle 3 (sets FLAGS_enable_pir_api=0)",
    )


def _configure_way(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it runs")
    add = group.add_argument
    add(
        "--engine",
        choices=("local", "warm", "ray"),
        default="local",
        help="local: a fresh process per step (default); warm: Python steps are forked from one "
        "that has imported paddle; ray: steps run on a Ray cluster",
    )
    add("--address", metavar="HOST:PORT", help="of the Ray cluster (default: the one found here)")
    add(
        "--shared-output",
        action="store_true",
        help="all nodes of the Ray cluster share the file system that steps write to",
    )
    add("-j", "--jobs", type=int, metavar="N", help="steps at a time (default: by the cores)")
    add(
        "--timeout",
        action="append",
        default=[],
        metavar="[STAGE=]SECONDS",
        help="time limit of every step, or of a stage's; repeatable",
    )
    add("--grace", type=float, default=5.0, metavar="SECONDS", help="from SIGTERM to SIGKILL")
    add("--log-limit", default="100M", metavar="SIZE", help="bytes one log keeps (default: 100M)")
    way = group.add_mutually_exclusive_group()
    way.add_argument(
        "--keep-going", action="store_true", help="after a failure, run what can run (default)"
    )
    way.add_argument("--fail-fast", action="store_true", help="start nothing more after a failure")
    add(
        "--allow",
        action="append",
        default=[],
        choices=["hollow"],
        help="let steps that tested nothing of what they were for count as good",
    )


def _configure_reports(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is written")
    add = group.add_argument
    add(
        "--output",
        type=Path,
        metavar="DIR",
        help=f"folder of the ledger and the results (default: {DEFAULT_OUTPUT} in the repo)",
    )
    add(
        "--gold",
        action="append",
        default=[],
        metavar="FILE",
        help="results that every inference has to print, a file or a pattern; repeatable "
        "(default: files of test_tipc/results with the model's name in theirs)",
    )
    add("--no-gold", action="store_true", help="compare with no gold file")
    add("--gold-atol", type=float, default=1e-3, metavar="X", help="absolute tolerance (1e-3)")
    add("--gold-rtol", type=float, default=1e-3, metavar="X", help="relative tolerance (1e-3)")
    add("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    add("--github", action="store_true", help="print annotations for GitHub Actions")
    add(
        "--status-format",
        choices=_STATUS_FORMATS,
        help="generation of the lines in results_python.log (default: by the config's profile)",
    )
    add("--json", action="store_true", help="print the results as JSON, and nothing else")


def settings_from(options: argparse.Namespace, root: Path) -> Settings:
    """Return the engine's settings that the options ask for.

    Raises:
        UsageError: a value that cannot be.
    """
    from tipcheck.step_runner.settings import Settings

    env = dict(pair("--env", text) for text in options.env)
    if options.legacy_ir:
        env.setdefault("FLAGS_enable_pir_api", "0")
    jobs = options.jobs if options.jobs is not None else default_jobs(os.cpu_count() or 1)
    if jobs < 1:
        raise UsageError(f"--jobs is {jobs}", hint="give a number of 1 or more")
    if options.grace < 0:
        raise UsageError(f"--grace is {options.grace:g}", hint="give a number of 0 or more")
    return Settings(
        root=root,
        output=options.output or root / DEFAULT_OUTPUT,
        jobs=jobs,
        limits=dict(_limit(text) for text in options.timeout),
        env=env,
        keep_going=not options.fail_fast,
        resume=options.resume,
        allow_hollow="hollow" in options.allow,
        grace=options.grace,
        one_machine=options.engine != "ray",
        log_limit=_size(options.log_limit),
    )


def gold_for(plans: Sequence[Plan], options: argparse.Namespace, root: Path) -> Mapping[str, Gold]:
    """Return the gold files of each plan that has some, by the plan's key.

    Raises:
        UsageError: a file that is not there, or a tolerance that cannot be.
    """
    from tipcheck.step_runner.gold import Gold, gold_of
    from tipcheck.step_runner.task import plan_key

    if options.no_gold and options.gold:
        raise UsageError("--gold and --no-gold exclude each other")
    tolerances = (options.gold_atol, options.gold_rtol)
    if not all(0 <= value < float("inf") for value in tolerances):
        raise UsageError("a tolerance of --gold is no number of 0 or more")
    given: list[Path] = []
    for text in options.gold:
        found = sorted(Path(name) for name in glob.glob(text, recursive=True))  # noqa: PTH207 - absolute patterns too
        if not found:
            raise UsageError("no such gold file", where=text, hint="see --gold in the guide")
        given += [file.absolute() for file in found]
    if options.no_gold:
        return {}
    golds = {
        plan_key(plan): tuple(given) or gold_of(root, plan.model_name)
        for plan in plans
        if any("infer" in step.stage for step in plan.steps)
    }
    if given and not golds:
        raise UsageError("--gold: no step is an inference", hint="leave --gold out")
    return {key: Gold(files, *tolerances) for key, files in golds.items() if files}


def default_jobs(cores: int) -> int:
    """Return how many steps run at a time: half the cores, for a step has threads of its own."""
    return min(cores, max(2, min(cores // 2, 8)))


def pair(option: str, text: str) -> tuple[str, str]:
    """Return the two sides of ``NAME=VALUE``.

    Raises:
        UsageError: it is not of that form.
    """
    name, equals, value = text.partition("=")
    if not equals or not name or "\0" in text:
        raise UsageError(f"{option} {text!r} sets nothing", hint=f"write {option} NAME=VALUE")
    return name, value


def _limit(text: str) -> tuple[str, float]:
    from tipcheck.step_runner.settings import ALL_STAGES

    stage, equals, number = text.rpartition("=")
    try:
        seconds = float(number)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf") or (equals and not stage):
        raise UsageError(
            f"--timeout {text!r} is no time limit", hint="write SECONDS or STAGE=SECONDS"
        )
    return stage or ALL_STAGES, seconds


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)B?", text, re.IGNORECASE)
    if not match:
        raise UsageError(
            f"--log-limit {text!r} is no size", hint="write a number such as 500K, 20M"
        )
    return int(match[1]) * _SIZES[match[2].upper()]
