"""The memory of a ladder over a model of one gigabyte, peak of the whole process tree.

Pages that processes share are counted once. The limit is what the issue of the ladder asks for: the
model, two sets of outputs, and 700 MB for everything else, Paddle itself included.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from ratios import Row, Table
from tipcheck.backends.subject import InputSet, InputSpec, Subject
from tipcheck.stage_ladder.climb import climb
from tipcheck.stage_ladder.settings import Settings
from tipcheck.step_runner.proctree import descendants, memory_of

TITLE = "Memory of a ladder"
HOW = (
    "Peak of the whole process tree while a model with 1 GB of parameters climbs the ladder, minus "
    "the model and two sets of its outputs."
)
WIDTH, DEPTH = 5_120, 10
STAGES = ("jit_load", "executor", "inference", "inference_ir")
PLAIN = """
import os, sys
from pathlib import Path
import numpy as np, paddle
from tipcheck.backends.predictor import make_predictor, run_predictor
predictor = make_predictor(Path(sys.argv[1]), "onednn")
run_predictor(predictor, {"x": np.ones((2, int(sys.argv[2])), np.float32)})
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def measure() -> Table:
    """Measure once."""
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room)
        _export(folder)
        size = (folder / "large.pdiparams").stat().st_size
        np.savez(folder / "x.npz", x=np.ones((2, WIDTH), np.float32))
        subject = Subject(
            "large",
            "large.json",
            (InputSpec("x", (-1, WIDTH), "float32"),),
            (InputSet("ones", "x.npz", "given"),),
        )
        peak = _climb(subject, folder, STAGES)
        outputs = 2 * 2 * WIDTH * 4
        rest = (peak - size - outputs) / 1e6
        plain = _plain_onednn(folder)
        onednn = _climb(subject, folder, ("executor", "onednn"))
        rows = (
            Row("model", size / 1e6, "MB"),
            Row(f"peak of the process tree, {', '.join(STAGES)}", peak / 1e6, "MB"),
            Row("beyond the model and two output sets", rest, "MB", "at most 700"),
            Row("a plain oneDNN predictor, which packs a second copy", plain / 1e6, "MB"),
            Row("the oneDNN rung beyond that", (onednn - plain) / 1e6, "MB", "at most 700"),
        )
        return Table(HOW, rows)


def _climb(subject: Subject, folder: Path, stages: tuple[str, ...]) -> int:
    peak = _Peak()
    with peak:
        result = climb(subject, folder, Settings(stages=stages))
    assert result.compared == len(stages), result.sentence
    return peak.bytes


def _plain_onednn(folder: Path) -> int:
    program = [sys.executable, "-c", PLAIN, str(folder / "large.json"), str(WIDTH)]
    ran = subprocess.run(program, check=True, capture_output=True, text=True)
    return int(ran.stdout.split()[-1]) * 1024


def _export(folder: Path) -> None:
    program = (
        "import paddle\n"
        "from paddle import nn\n"
        f"net = nn.Sequential(*[nn.Linear({WIDTH}, {WIDTH}) for _ in range({DEPTH})])\n"
        f"spec = [paddle.static.InputSpec([None, {WIDTH}], 'float32', 'x')]\n"
        f"paddle.jit.save(net.eval() or net, {str(folder / 'large')!r}, input_spec=spec)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


class _Peak:
    """Watches what this process and everything below it hold."""

    def __init__(self) -> None:
        self.bytes = 0
        self._over = False
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._thread.join()

    def _watch(self) -> None:
        while not self._over:
            here = os.getpid()
            self.bytes = max(self.bytes, memory_of([here, *descendants(here)]))
            time.sleep(0.05)
