"""How long it takes to plan a config, against reading its file and splitting it into lines.

The configs have the 32-line layout; each is a file of its own with a name of its own, so that
nothing can be remembered from one to the next but the profile.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from ratios import Row, Table, interleaved
from tipcheck.config_plans.planner import make_plan

TITLE = "Planning"
CONFIGS, ROUNDS, MODE = 1000, 5, "lite_train_lite_infer"
HOW = (
    f"{CONFIGS:,} configs of the 32-line layout, two training entries and four inferences each, "
    "planned one after the other: time of one config, and how many times that of reading its file; "
    f"processor time, the best of {ROUNDS} rounds, because a busy machine only ever adds."
)
CONFIG = """\
===========================train_params===========================
model_name:net_{number}
python:python3
gpu_list:0|0,1
use-gpu:True|True
--epochs:lite_train_lite_infer=5|whole_train_whole_infer=90
--output-dir:./output/
--batch-size:lite_train_lite_infer=4|whole_train_whole_infer=128
--pretrained:null
train_model_name:latest.pdparams
--data-path:./lite_data
##
trainer:norm_train
norm_train:train.py --model=net_{number}
##
===========================eval_params===========================
eval:train.py --test-only
##
===========================export_params===========================
--save-inference-dir:./out/
--pretrained:
norm_export:tools/export_model.py --model=net_{number}
##
train_model:./pretrained.pdparams
infer_export:tools/export_model.py --model=net_{number}
===========================infer_params===========================
inference:deploy/infer.py
--use-gpu:True|False
--batch-size:1
--model-dir:./out/
--img-path:./images/demo.jpg
--benchmark:True
"""


def measure() -> Table:
    """Measure planning and reading, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        files = [write(Path(folder), number) for number in range(CONFIGS)]
        times = interleaved(
            {
                "plan": lambda: [make_plan(file, MODE) for file in files],
                "read": lambda: [file.read_text("utf-8").splitlines() for file in files],
            },
            ROUNDS,
            of=min,
            clock=time.process_time,
        )
    each = times["plan"] / CONFIGS * 1000
    return Table(
        HOW,
        (
            Row("one config", each, "ms", "at most 1"),
            Row("one config, against reading its file", times["plan"] / times["read"], "x"),
        ),
    )


def write(folder: Path, number: int) -> Path:
    """Write one config into a repo of its own shape; return its path."""
    file = folder / "test_tipc" / "configs" / f"net_{number}" / "train_infer_python.txt"
    file.parent.mkdir(parents=True)
    file.write_text(CONFIG.format(number=number), "utf-8")
    return file
