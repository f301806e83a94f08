"""Run a small real Paddle model in several ways and compare the answers.

MobileNetV3-small (random weights from a fixed seed) runs as the layer it is, then exported through
Paddle Inference: without optimisation, with oneDNN, and with oneDNN in bfloat16 where the CPU can.
Every run is a process of its own, and leaves its outputs in a folder for `tipcheck compare`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD, ToolError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from tipcheck.backends import StageOutputs

_EXACT_STAGES = ("inference", "onednn")
_COARSE_STAGE = "onednn_bf16"
_TIME_LIMIT = 300.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("tipcheck-demo"),
        metavar="FOLDER",
        help="where the model and the outputs go (default: tipcheck-demo)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the tour; 1 when a float32 stage gives other answers than the layer."""
    from tipcheck.compare import Status, compare_files
    from tipcheck.report.tour import Tour

    folder: Path = options.output.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make the folder ({error.strerror})", where=str(folder), hint="see --output"
        ) from None
    tour = Tour(options.output)
    tour.begin()
    eager = _run_stage("eager", folder)
    if not eager.archive:
        raise ToolError(
            f"the model does not run: {' / '.join(eager.last_lines[-1:]) or eager.signal}",
            hint="`tipcheck doctor` says what is missing",
        )
    tour.ran(eager)
    good = True
    stages = (*_EXACT_STAGES, _COARSE_STAGE)
    for stage, outputs in zip(stages, _run_stages(stages, folder), strict=True):
        if not outputs.archive:
            tour.did_not_run(outputs)
            good = good and stage == _COARSE_STAGE
            continue
        comparison = compare_files(Path(eager.archive), Path(outputs.archive))
        tour.compared(outputs, comparison)
        good = good and (comparison.status is Status.PASS or stage == _COARSE_STAGE)
    tour.end()
    return EXIT_GOOD if good else EXIT_CHECK_FAILED


def _run_stages(stages: Sequence[str], folder: Path) -> Iterator[StageOutputs]:
    """Yield the outputs of some stages in order, running two at a time."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(lambda stage: _run_stage(stage, folder), stages)


def _run_stage(stage: str, folder: Path) -> StageOutputs:
    from tipcheck.backends import StageOutputs
    from tipcheck.backends.isolation import run_worker

    request = {"stage": stage, "folder": str(folder)}
    end = run_worker("tipcheck.backends.demo_model", request, time_limit=_TIME_LIMIT)
    if not end.messages:
        return StageOutputs(stage, 0, (), "", signal=end.signal, last_lines=end.last_lines)
    found = end.messages[-1]
    return StageOutputs(stage, 1, tuple(found["outputs"]), found["archive"], found["seconds"])
