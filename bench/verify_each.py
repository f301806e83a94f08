"""Twenty exports verified: ``verify --each`` against the way of TIPC's own export check.

That way is a loop: for every config a fresh process exports, and a second one loads the export and
runs inference. Both sides run the bundled suite's export script, the same configs, the same files.
The exports alone, with the same engine and nothing after them, show what verifying costs besides.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ratios import Row, Table
from tipcheck.config_plans import Plan, Step
from tipcheck.step_runner.runner import make_warm, run_plans
from tipcheck.step_runner.settings import Settings
from tipcheck.step_runner.watcher import Silent

TITLE = "Verified exports of a whole repo"
HOW = (
    "20 configs of the bundled export suite (12 families). The seed's way: for each config one "
    "process that exports and a second one that loads the export and infers, one after the other. "
    "`--each`: two configs at a time, the layer's own answers against a predictor with IR passes, "
    "every export has to verify. Exports alone: the same engine, nothing verified. The extra cost "
    "is told for each model, as a share of exporting it in a process of its own."
)
CONFIGS = 20
SUITE = Path(__file__).parents[1] / "examples" / "export_suite"
INFER = """
import sys

import numpy as np
from paddle import inference

sys.path.insert(0, sys.argv[3])
from tipcheck.backends.exports.program import read_program
from pathlib import Path

model = Path(sys.argv[1])
config = inference.Config(str(model), str(model.with_suffix(".pdiparams")))
config.disable_glog_info()
config.disable_onednn()  # it refuses the resizing of one of the models
predictor = inference.create_predictor(config)
for spec in read_program(model).inputs:
    shape = [2 if axis == 0 and n < 0 else 32 if n < 0 else n for axis, n in enumerate(spec.shape)]
    array = np.random.default_rng(1).random(shape) if "float" in spec.dtype else np.zeros(shape)
    predictor.get_input_handle(spec.name).copy_from_cpu(array.astype(spec.dtype))
predictor.run()
for name in predictor.get_output_names():
    print(name, predictor.get_output_handle(name).copy_to_cpu().shape)
"""


def measure() -> Table:
    """Measure the three ways, each in a copy of the suite of its own."""
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        loop, exports = seeds_way(make_repo(room / "loop"))
        alone = exports_alone(make_repo(room / "alone"))
        each = verified(make_repo(room / "each"), room)
    extra = (each - alone) / CONFIGS
    rows = (
        Row("seed's way / `verify --each`", loop / each, "x faster", "at least 4"),
        Row("seed's exports only / `verify --each`", exports / each, "x faster"),
        Row("`verify --each` / the same exports, not verified", each / alone, "x"),
        Row("extra cost of verifying a model / exporting it in a fresh process",
            extra / (exports / CONFIGS), "x", "at most 0.5"),
    )  # fmt: skip
    return Table(HOW, rows)


def make_repo(root: Path) -> Path:
    """Return a copy of the suite with twenty configs, some of them again with other weights."""
    shutil.copytree(SUITE, root)
    configs = sorted(path for path in root.glob("configs/*/*.yaml") if "static" not in path.parts)
    number = 0
    while len(list(root.glob("configs/*/*.yaml"))) - 1 < CONFIGS:
        source = configs[number % len(configs)]
        text = source.read_text("utf-8").replace("Global:", "Global:\n  seed: 7", 1)
        if "Global:\n  seed: 7 {}" in text:
            text = text.replace("Global:\n  seed: 7 {}", "Global:\n  seed: 7")
        source.with_name(f"{source.stem}_again.yaml").write_text(text, "utf-8")
        number += 1
    shutil.rmtree(root / "configs" / "static")
    return root


def configs_of(root: Path) -> list[str]:
    """Return the configs, relative to the repo."""
    return sorted(str(path.relative_to(root)) for path in root.glob("configs/*/*.yaml"))


def seeds_way(root: Path) -> tuple[float, float]:
    """Return the seconds of the whole loop, and of its exports."""
    (root / "infer.py").write_text(INFER, encoding="utf-8")
    source = str(Path(__file__).parents[1] / "src")
    begin, exporting = time.perf_counter(), 0.0
    for config in configs_of(root):
        start = time.perf_counter()
        run([sys.executable, "tools/export_model.py", "-c", config], root)
        exporting += time.perf_counter() - start
        model = f"inference/{Path(config).stem}/inference.json"
        run([sys.executable, "infer.py", model, config, source], root)
    return time.perf_counter() - begin, exporting


def exports_alone(root: Path) -> float:
    """Return the seconds that the exports take with the engine alone."""
    plans = [
        Plan(
            config=config,
            mode="export",
            profile="bench",
            model_name=config,
            steps=(
                Step(
                    id="export",
                    stage="export",
                    argv=(sys.executable, "tools/export_model.py", "-c", config),
                    log=f"logs/{Path(config).stem}.log",
                ),
            ),
        )
        for config in configs_of(root)
    ]
    begin = time.perf_counter()
    ran = run_plans(plans, Settings(root=root, output=root / "out", jobs=2), Silent(), make_warm)
    seconds = time.perf_counter() - begin
    assert all(result and result.outcome.is_good for result in ran.results)
    return seconds


def verified(root: Path, room: Path) -> float:
    """Return the seconds that exporting and verifying take, the command's own start included."""
    report = room / "report.json"
    begin = time.perf_counter()
    run(
        [
            *(sys.executable, "-m", "tipcheck", "verify", "--each", "configs", "-j", "2"),
            *("--json", str(report), "--output", str(room / "kept"), "--"),
            *(sys.executable, "tools/export_model.py", "-c", "{}"),
        ],
        root,
    )
    seconds = time.perf_counter() - begin
    told = json.loads(report.read_text("utf-8"))
    assert told["counts"] == {"PASS": CONFIGS}, told["counts"]
    return seconds


def run(argv: list[str], root: Path) -> None:
    """Run a command; it has to end well."""
    ran = subprocess.run(argv, cwd=root, env=os.environ, capture_output=True, check=False)
    assert ran.returncode == 0, (argv, ran.stdout[-2000:], ran.stderr[-2000:])


if __name__ == "__main__":
    from ratios import markdown

    print(markdown(measure()))
