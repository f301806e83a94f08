"""Verify that a model gives the same answers at every stage of its life.

MODEL is an exported .json or .pdmodel file (or its folder), or module:factory of a layer, which a
worker makes, exports and runs. Every stage runs in a process of its own and is compared with the
bottom of the ladder and with the rung below it. What cannot run here is listed with the reason.
Behind `--`, a command of yours is run as it stands, and what it exports is verified against its
layers; with --each PATTERN, once for every config; --train compares a training in both ways.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.cli.verify_forms import add_arguments as add_forms
from tipcheck.cli.verify_forms import check_seed, run_form, split_command
from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD, UsageError

__all__ = ["configure", "run", "split_command"]

if TYPE_CHECKING:
    import argparse

    from tipcheck.backends.subject import InputSpec
    from tipcheck.compare.budget import Budget
    from tipcheck.stage_ladder.request import InputRequest
    from tipcheck.stage_ladder.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help="an exported model, its folder, or module:factory of a layer",
    )
    _configure_inputs(parser)
    _configure_judging(parser)
    add = parser.add_argument
    add("--stages", metavar="A,B,...", help="only these stages; one that cannot run here fails")
    add("--no-state", action="store_true", help="leave out the state-and-shape suite")
    add("--no-referee", action="store_true", help="leave out the float64 referee")
    add(
        "--full",
        action="store_true",
        help="ask large models too what takes several times their memory",
    )
    add("--time-limit", type=float, default=300.0, metavar="S", help="seconds for one stage")
    add("--workers", type=int, default=0, metavar="N", help="stages at the same time")
    add("--threads", type=int, default=1, metavar="N", help="threads of one stage (default: 1)")
    add("--json", type=Path, metavar="FILE", help="write the result as JSON")
    add("--junit", type=Path, metavar="FILE", help="write the result as JUnit XML")
    add_forms(parser)
    add("--explain", action="store_true", help="print the stages and the budgets, and run nothing")


def _configure_inputs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--input",
        action="append",
        type=Path,
        default=[],
        metavar="FILE.npz",
        help="inputs by name, instead of made ones; may be repeated",
    )
    add("--inputs", default="", metavar="MODULE:FUNCTION", help="a function that gives inputs")
    add("--images", default="", metavar="FOLDER", help="images, for --preprocess")
    add(
        "--preprocess",
        default="",
        metavar="MODULE:FUNCTION",
        help="from the path of an image to the inputs of the model",
    )
    add("--most", type=int, default=8, metavar="N", help="images at most (default: 8)")
    add("--kinds", metavar="A,B,...", help="kinds of made inputs (default: all)")
    add("--seed", type=int, default=0, help="where random inputs start (default: 0)")
    add("--calibration", default="", metavar="PATH", help="samples for trt_int8 without scales")
    add(
        "--spec",
        action="append",
        default=[],
        metavar="NAME:DTYPE:SHAPE",
        help="an input of a layer that does not say it, such as x:float32:-1,3,224,224",
    )


def _configure_judging(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--rtol", type=float, help="relative tolerance of full precision (default: by dtype)")
    add("--atol", type=float, help="absolute tolerance of full precision (default: by dtype)")
    add(
        "--budget",
        action="append",
        default=[],
        metavar="PRECISION=WARN,FAIL",
        help="noise budget in dB, such as bfloat16=30,20; may be repeated",
    )
    add(
        "--allow",
        action="append",
        default=[],
        choices=["suspect"],
        help="what does not count as a failure",
    )


def run(options: argparse.Namespace) -> int:
    """Verify, show, and return the exit code."""
    if options.explain:
        from tipcheck.report.ladder_rules import show_ladder_rules

        show_ladder_rules()
        return EXIT_GOOD
    code = run_form(options)
    if code is not None:
        return code
    if options.model is None:
        raise UsageError("a model is needed", hint="type `tipcheck verify inference.json`")
    from tipcheck.report.ladder import show_ladder
    from tipcheck.report.ladder_files import write_ladder_files
    from tipcheck.report.terminal import waiting
    from tipcheck.stage_ladder.verifying import verify_target

    request, settings = _request(options), settings_of(options)
    with waiting("importing Paddle") as say:
        result = verify_target(
            options.model, request, settings, say=lambda stage: say(f"running {stage}")
        )
    show_ladder(result)
    allow = frozenset(options.allow)
    write_ladder_files([result], json=options.json, junit=options.junit, allow=allow)
    return EXIT_GOOD if result.good(allow) else EXIT_CHECK_FAILED


def _request(options: argparse.Namespace) -> InputRequest:
    from tipcheck.stage_ladder.request import InputRequest

    for option in ("inputs", "preprocess"):
        if getattr(options, option) and ":" not in getattr(options, option):
            raise UsageError(f"--{option} takes module:function or file.py:function")
    return InputRequest(
        archives=tuple(path.absolute() for path in options.input),
        function=options.inputs,
        images=options.images,
        preprocess=options.preprocess,
        most=options.most,
        kinds=names(options.kinds),
        seed=options.seed,
        specs=tuple(map(spec_of, options.spec)),
        full=options.full,
    )


def settings_of(options: argparse.Namespace) -> Settings:
    """Return how the ladder is climbed.

    Raises:
        UsageError: a value that cannot be.
    """
    from tipcheck.backends.calibration import sample_files
    from tipcheck.compare import Rules
    from tipcheck.stage_ladder.lineup import check_names
    from tipcheck.stage_ladder.settings import Settings

    check_names(names(options.stages))
    if options.calibration:
        sample_files(Path(options.calibration))
    Rules(rtol=options.rtol, atol=options.atol)  # refuses what no element could be judged by
    if not options.time_limit > 0:
        raise UsageError(f"--time-limit is {options.time_limit:g}", hint="give seconds, such as 60")
    check_seed(options.seed)
    if options.threads < 1 or options.workers < 0:
        raise UsageError("--threads and --workers are counts", hint="give 1 or more")
    return Settings(
        stages=names(options.stages),
        rtol=options.rtol,
        atol=options.atol,
        budgets=dict(map(_budget, options.budget)),
        state=not options.no_state,
        referee=not options.no_referee,
        full=options.full,
        time_limit=options.time_limit,
        workers=options.workers,
        threads=options.threads,
        calibration=options.calibration,
    )


def names(text: str | None) -> tuple[str, ...]:
    """Return the words of a list with commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def spec_of(text: str) -> InputSpec:
    """Return the input that ``NAME:DTYPE:SHAPE`` describes.

    Raises:
        UsageError: it is not of that form.
    """
    import numpy as np

    from tipcheck.backends.subject import InputSpec

    name, _, rest = text.partition(":")
    dtype, _, shape = rest.partition(":")
    try:
        axes = tuple(int(part) for part in shape.split(",") if part.strip())
        if dtype != "bfloat16":
            np.dtype(dtype)
    except (ValueError, TypeError):
        axes, name = (), ""
    if not name or not dtype:
        raise UsageError(
            f"--spec {text!r} is no NAME:DTYPE:SHAPE", hint="such as x:float32:-1,3,224,224"
        )
    return InputSpec(name, axes, dtype)


def _budget(text: str) -> tuple[str, Budget]:
    from dataclasses import replace

    from tipcheck.compare.budget import BUDGETS

    name, _, figures = text.partition("=")
    row = next((row for row in BUDGETS if row.precision == name), None)
    try:
        warn, fail = (float(part) for part in figures.split(","))
    except ValueError:
        row = None
    if row is None or not warn >= fail:
        known = ", ".join(item.precision for item in BUDGETS)
        raise UsageError(
            f"--budget {text!r} is no PRECISION=WARN,FAIL",
            hint=f"such as bfloat16=30,20; the precisions are {known}",
        )
    return name, replace(row, warn_db=warn, fail_db=fail, why="given")
