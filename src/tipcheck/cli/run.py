"""Run a model repo's chain, train to infer, from its TIPC configs, and keep a record of every step.

The same command given again goes on with a run that did not finish; a finished one runs anew,
unless --resume says to skip what passed and has not changed.
Exit codes: 0 all good; 1 a step failed, crashed, timed out, was blocked or is hollow; 2 wrong
usage or config; 3 the tool or its environment failed; 130 interrupted.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tipcheck.cli.config_files import config_files, repo_of
from tipcheck.cli.run_options import add_arguments, gold_for, pair, settings_from
from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tipcheck.config_plans import Plan
    from tipcheck.report.run_result import RunReport
    from tipcheck.step_runner.runner import EngineMaker
    from tipcheck.step_runner.settings import Ran, Settings

EXIT_INTERRUPTED = 130


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Run the chains, show and write the results, and return the exit code."""
    from tipcheck.step_runner.task import select, with_python

    if options.engine != "ray" and (options.address or options.shared_output):
        raise UsageError("--address and --shared-output are for --engine ray")
    configs = config_files(options.configs)
    settings = settings_from(options, repo_of(configs))
    plans = [plan for config in configs for plan in read_plans(config, options)]
    if options.python:
        plans = [with_python(plan, options.python) for plan in plans]
    if options.only or options.skip:
        plans = select(plans, only=options.only, skip=options.skip)
    _check_stages(settings.limits, plans)
    if not any(plan.steps for plan in plans):
        raise UsageError("these configs have no step to run in this mode")
    settings = replace(settings, gold=gold_for(plans, options, settings.root))
    ran = _watch(plans, settings, options)
    return _report(ran, settings, options)


def _check_stages(limits: Mapping[str, float], plans: Sequence[Plan]) -> None:
    from tipcheck.step_runner.settings import ALL_STAGES

    stages = list(dict.fromkeys(step.stage for plan in plans for step in plan.steps))
    for stage in limits:
        if stages and stage not in {*stages, ALL_STAGES}:
            raise UsageError(
                f"--timeout: no step has the stage {stage!r}",
                hint=f"there are: {', '.join(stages)}",
            )


def read_plans(config: Path, options: argparse.Namespace) -> Sequence[Plan]:
    """Return the plans of one argument: an explicit plan file, or a config.

    Raises:
        UsageError: the file cannot be read, or makes no plan.
    """
    from tipcheck import wire
    from tipcheck.config_plans import Plan

    if config.suffix != ".json":
        return [plan_config(config, options)]
    for option, given in (
        ("--mode", options.mode),
        ("--profile", options.profile),
        ("--as-bash", options.as_bash),
        ("--set", options.set),
        ("--epochs", options.epochs),
        ("--device", options.device),
    ):
        if given and all(each.suffix == ".json" for each in options.configs):
            raise UsageError(
                f"{option} is for configs, this is a plan that was made already",
                where=str(config),
                hint=f"leave {option} out, or make the plan anew with it",
            )
    try:
        text = config.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(config)) from None
    if text.lstrip()[:1] != b"[":
        return [wire.loads(text, Plan, source=str(config))]
    try:
        listed = [json.dumps(one) for one in json.loads(text)]
    except ValueError as error:
        raise UsageError(f"not readable as JSON ({error})", where=str(config)) from None
    return [wire.loads(one, Plan, source=f"{config}, plan {n}") for n, one in enumerate(listed, 1)]


def plan_config(config: Path, options: argparse.Namespace) -> Plan:
    """Return the plan of a config.

    Raises:
        UsageError: the config or the mode cannot be used.
    """
    from tipcheck.config_plans.planner import make_plan

    if not options.mode:
        raise UsageError(
            "a config needs a mode", where=str(config), hint="add --mode lite_train_lite_infer"
        )
    values = dict(pair("--set", text) for text in options.set)
    plan = partial(
        make_plan,
        config,
        options.mode,
        profile=options.profile,
        as_bash=options.as_bash,
        device=options.device,
    )
    if options.epochs is None:
        return plan(values=values)
    if options.epochs < 1:
        raise UsageError(f"--epochs is {options.epochs}", hint="give a number of 1 or more")
    plain = plan(values=values)
    if not any(step.stage == "train" for step in plain.steps):
        return plain  # nothing is trained: a quantisation, or weights that are there already
    return plan(values={**values, "epoch": str(options.epochs)})


def _watch(plans: Sequence[Plan], settings: Settings, options: argparse.Namespace) -> Ran:
    """Run the plans with the view that fits where the output goes."""
    from tipcheck.report.terminal import terminal
    from tipcheck.step_runner.runner import make_local, make_warm, run_plans
    from tipcheck.step_runner.watcher import Silent

    engine: EngineMaker = make_warm if options.engine == "warm" else make_local
    if options.engine == "ray":
        engine = make_ray(plans, options)
    if options.json:
        return run_plans(plans, settings, Silent(), engine)
    console = terminal()
    if not console.is_terminal or console.is_dumb_terminal:
        from tipcheck.report.run_lines import PlainLines

        return run_plans(plans, settings, PlainLines(sys.stdout), engine)
    from tipcheck.report.run_view import LiveView

    view = LiveView(console)
    try:
        return run_plans(plans, settings, view, engine)
    finally:
        view.close()


def make_ray(plans: Sequence[Plan], options: argparse.Namespace) -> EngineMaker:
    """Return what makes the engine that runs these plans on a Ray cluster.

    Raises:
        UsageError: Ray is not installed.
    """
    from tipcheck.step_runner.task import plan_key

    try:
        from tipcheck.step_runner.ray_engine import Cluster, RayEngine
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise UsageError(
            "--engine ray needs Ray, which is not installed", hint="pip install 'ray>=2.40'"
        ) from None
    widest = {
        plan_key(plan): max((len(step.gpus) for step in plan.steps), default=0) for plan in plans
    }

    def make(journal: Path, _lock: int) -> RayEngine:
        memory = journal.with_name("machines.json")
        return RayEngine(Cluster(options.address or "auto", options.shared_output, widest, memory))

    return make


def _report(ran: Ran, settings: Settings, options: argparse.Namespace) -> int:
    from tipcheck.report.run_files import write_files
    from tipcheck.report.run_result import make_report

    hollow = settings.allow_hollow
    report = make_report(ran, settings.root, allow_hollow=hollow)
    try:
        write_files(
            report,
            settings.root,
            settings.output,
            style=options.status_format,
            junit=options.junit,
            allow_hollow=hollow,
        )
    finally:  # a full disk must not hide what happened
        _print(report, options, allow_hollow=hollow)
    if report.interrupted_by:
        return EXIT_INTERRUPTED
    return EXIT_GOOD if report.good else EXIT_CHECK_FAILED


def _print(report: RunReport, options: argparse.Namespace, *, allow_hollow: bool) -> None:
    if options.json:
        from tipcheck import wire

        print(wire.dumps(report))
        return
    from tipcheck.report.run_table import show_run
    from tipcheck.report.terminal import terminal

    show_run(report, terminal())
    if options.github:
        from tipcheck.report.run_github import github_annotations

        for line in github_annotations(report, allow_hollow=allow_hollow):
            print(line)
