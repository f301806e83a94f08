"""Climbs the ladder: runs every stage, compares it with the bottom and the rung below, sums up."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.backends.calibration import sample_files
from tipcheck.backends.exports.program import read_program
from tipcheck.backends.inputs.samples import check_feed
from tipcheck.backends.server.link import StageLink
from tipcheck.backends.subject import output_name
from tipcheck.compare.verdict import Status
from tipcheck.errors import UsageError
from tipcheck.stage_ladder.lineup import line_up
from tipcheck.stage_ladder.noise import NoiseFloor, Shaken, measure_noise, measure_shaken
from tipcheck.stage_ladder.running import Course, Running
from tipcheck.stage_ladder.settings import Settings
from tipcheck.stage_ladder.summing import LadderParts, sum_up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tipcheck.backends.exports.program import Program
    from tipcheck.backends.subject import Subject
    from tipcheck.stage_ladder.answers import StageRun
    from tipcheck.stage_ladder.lineup import Lined
    from tipcheck.stage_ladder.rung import LadderResult

_FULL = ("float32", "float64")
_SIZES = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
"""The noise that a precision puts on every number, relative: one unit in its last place."""
_TIMES, _DRAWS = 4, 8
"""Noise of inputs stands for that of weights and of every step between: several times as much."""


def climb(
    subject: Subject,
    folder: Path,
    settings: Settings | None = None,
    *,
    path: Sequence[str] = (),
    link: StageLink | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> LadderResult:
    """Verify one subject.

    Args:
        subject: what to verify.
        folder: where the files that it names are.
        settings: how; the defaults otherwise.
        path: folders to find the module of ``subject.source`` in.
        link: a stage server that runs already, with the environment that the model needs.
        say: called with the name of each stage as it begins.

    Raises:
        UsageError: a file or a name cannot be used as it is.
        ToolError: Paddle does not start.
    """
    settings = settings or Settings()
    model = (folder / subject.model).absolute() if subject.model else None
    program = read_program(model) if model else None
    if not subject.sets:
        raise UsageError("there are no inputs", hint="give some with --input")
    if settings.calibration:
        settings = replace(settings, calibration=_calibration(settings.calibration, subject))
    lined = line_up(subject, program, settings.stages)
    with tempfile.TemporaryDirectory(prefix="tipcheck-ladder-") as work:
        room = folder if settings.keep else Path(work)
        sets = [str((folder / item.archive).absolute()) for item in subject.sets]
        course = Course(subject, folder.absolute(), model, tuple(path), sets, _size(model))
        opened = StageLink(room.absolute(), environment_for(model)) if link is None else link
        with opened if link is None else nullcontext():
            running = Running(opened, course, settings, say)
            runs = running.all(lined)
            truth, told = running.referee()
            bfloat16 = settings.bfloat16 | _bfloat16(program)
            noise = _noise(truth, told, lined, runs, bfloat16)
            runs = {name: _unused(name, runs, lined) for name in runs}
            parts = LadderParts(subject, lined, runs, noise, running.dropped, bfloat16, program)
            result = sum_up(parts, sets, settings)
            shaken = _shaken(result, parts, running)
        if not shaken:
            return result
        return sum_up(replace(parts, noise=replace(noise, shaken=shaken)), sets, settings)


def _shaken(result: LadderResult, parts: LadderParts, running: Running) -> dict[str, Shaken]:
    """Find out how much a model makes of noise, for lower precisions whose answers are doubted."""
    doubted = {
        item.kind.precision
        for item, rung in zip(parts.lined, result.rungs, strict=True)
        if item.kind.precision not in _FULL
        and rung.bottom is not None
        and rung.bottom.status in (Status.SUSPECT, Status.FAIL)
    }
    plain = parts.runs.get("executor")
    if plain is None or not plain.answered:
        return {}
    found = {}
    for precision in sorted(doubted & _SIZES.keys()):
        moved = running.shaken(_TIMES * _SIZES[precision], _DRAWS)
        found[precision] = measure_shaken(plain, moved, parts.bfloat16, _TIMES)
    return found


def _calibration(path: str, subject: Subject) -> str:
    """Return where samples are, as a worker can use it, once all of them are seen to fit."""
    for file in sample_files(Path(path)):
        check_feed(file, subject.inputs)
    return str(Path(path).absolute())


def environment_for(model: Path | None) -> dict[str, str]:
    """Return what a stage server has to be started with: the older format needs older code."""
    return {"FLAGS_enable_pir_api": "0"} if model and model.suffix == ".pdmodel" else {}


def _noise(
    truth: StageRun,
    told: str,
    lined: Sequence[Lined],
    runs: dict[str, StageRun],
    bfloat16: frozenset[str],
) -> NoiseFloor:
    if not truth.answered:
        return NoiseFloor(referee=told)
    full = [
        runs[item.way.name]
        for item in lined
        if item.kind.precision in _FULL and runs[item.way.name].answered
    ]
    return measure_noise(truth, full, bfloat16, told)


def _unused(name: str, runs: dict[str, StageRun], lined: Sequence[Lined]) -> StageRun:
    """Return a run of lower precision as unsupported when its answers are those of full precision.

    Paddle accepts bfloat16 also where it then computes in float32.
    """
    run = runs[name]
    kind = next(item.kind for item in lined if item.way.name == name)
    onto = runs.get(kind.onto)
    sure = kind.precision in _FULL or name == "onednn_int8"  # that stage looks for itself
    if sure or not run.answered or onto is None or not onto.answered:
        return run
    if any(
        run.archives[number].read_bytes() != onto.archives[number].read_bytes()
        for number in run.archives.keys() & onto.archives.keys()
    ):
        return run
    why = f"Paddle accepts it, but its answers are those of {kind.onto}, bit for bit"
    return replace(run, archives={}, unsupported=why, checks=())


def _bfloat16(program: Program | None) -> frozenset[str]:
    if program is None:
        return frozenset()
    return frozenset(
        output_name(number) for number, dtype in enumerate(program.outputs) if dtype == "bfloat16"
    )


def _size(model: Path | None) -> int:
    parameters = model.with_suffix(".pdiparams") if model else None
    return parameters.stat().st_size if parameters and parameters.is_file() else 0
