"""What a ladder costs, against the plain forward passes and model loads of the same stages.

Plain means: every stage loaded once and run once on every input set, one stage after the other, in
processes that have imported Paddle already. The ladder runs each stage on the same inputs, runs it
again in the same process and in a fresh one, asks about state and shape, and runs the referee.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ratios import Row, Table
from tipcheck.backends.exports.program import read_program
from tipcheck.backends.inputs.drawn import make_sets
from tipcheck.backends.server.link import StageLink
from tipcheck.backends.subject import Subject
from tipcheck.stage_ladder.climb import climb
from tipcheck.stage_ladder.settings import Settings

TITLE = "Cost of a ladder"
HOW = (
    "Wall time of a ladder of 8 rungs on ResNet50 (224 x 224, all kinds of inputs, the import of "
    "Paddle included), divided by the sum of the plain forward passes and model loads of those "
    "rungs."
)
STAGES = (
    "jit_load",
    "executor",
    "inference",
    "inference_ir",
    "onednn",
    "onednn_bf16",
    "onnxruntime",
    "openvino",
)


def measure() -> Table:
    """Measure once; the plain passes come after the ladder, with warm files."""
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room)
        _export(folder)
        specs = read_program(folder / "net.json").inputs
        subject = Subject("resnet50", "net.json", specs, make_sets(specs, folder))
        rows = []
        for name, settings in (
            ("whole", Settings(stages=STAGES)),
            (
                "without state suite and referee",
                Settings(stages=STAGES, state=False, referee=False),
            ),
        ):
            start = time.perf_counter()
            result = climb(subject, folder, settings)
            seconds = time.perf_counter() - start
            assert result.compared == len(STAGES), result.sentence
            plain = _plain(subject, folder)
            limit = "at most 3" if name == "whole" else ""
            rows.append(Row(f"ladder, {name}", seconds / plain, "x plain", limit))
        return Table(HOW, tuple(rows))


def _plain(subject: Subject, folder: Path) -> float:
    """Return the seconds of loading every stage and running it on every input set once."""
    total = 0.0
    with tempfile.TemporaryDirectory() as room, StageLink(Path(room)) as link:
        for stage in STAGES:
            job = {
                "do": "stage",
                "stage": stage,
                "model": str(folder / subject.model),
                "inputs": [{"name": item.name} for item in subject.inputs],
                "sets": [str(folder / item.archive) for item in subject.sets],
                "names": [item.name for item in subject.sets],
            }
            end = link.run(job, 300.0)
            assert end.answer("done"), end
            total += float(end.answer("loaded"))
            total += sum(float(item["seconds"]) for item in end.messages if "seconds" in item)
    return total


def _export(folder: Path) -> None:
    program = (
        "import paddle\n"
        "net = paddle.vision.models.resnet50()\n"
        "net.eval()\n"
        "spec = [paddle.static.InputSpec([None, 3, 224, 224], 'float32', 'x')]\n"
        f"paddle.jit.save(net, {str(folder / 'net')!r}, input_spec=spec)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
