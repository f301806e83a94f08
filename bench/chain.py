"""The four-step chain of the example repo: the engine ``warm`` against bash over the same commands.

Bash does what a model repo's own script does: train, evaluate, export, infer, one ``python`` after
the other, each with its output in a log. The engine runs the plan of the same config.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ratios import Row, Table
from tipcheck.config_plans.planner import make_plan
from tipcheck.step_runner.runner import make_local, make_warm, run_plans
from tipcheck.step_runner.settings import Settings
from tipcheck.step_runner.task import with_python
from tipcheck.step_runner.watcher import Silent

if TYPE_CHECKING:
    from tipcheck.config_plans import Plan

EXAMPLE = Path(__file__).parents[1] / "examples" / "mobilenet_v3"
CONFIG = Path("test_tipc/configs/mobilenet_v3_small/train_infer_python.txt")
TITLE = "A chain of four steps"
MODE, ROUNDS = "lite_train_lite_infer", 3
HOW = (
    "Time of bash over the four commands of the example's `train_infer_python.txt` "
    f"(`{MODE}`, on the CPU), divided by the time of the same plan through an engine, two steps at "
    f"a time. The best of {ROUNDS} rounds, one way after the other in each: a busy machine only "
    "ever adds. The longer a training, the less the rest counts: this one has five epochs, as the "
    "config says."
)


def measure() -> Table:
    """Measure bash and both engines in turn."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "repo")
        shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("output", "lite_data*"))
        subprocess.run([sys.executable, "tools/prepare_data.py"], cwd=root, check=True)
        plan = with_python(make_plan(root / CONFIG, MODE, device="cpu"), sys.executable)
        rounds = [one_round(plan, root) for _ in range(ROUNDS)]
    bash, warm, local = (min(seconds) for seconds in zip(*rounds, strict=True))
    rows = (
        Row("bash / `--engine warm`", bash / warm, "x faster", "at least 1.7"),
        Row("bash / `--engine local`", bash / local, "x faster"),
    )
    return Table(HOW, rows)


def one_round(plan: Plan, root: Path) -> tuple[float, ...]:
    """Return the seconds that bash, ``warm`` and ``local`` took."""
    begin = time.perf_counter()
    with_bash(plan, root)
    seconds = [time.perf_counter() - begin]
    for maker in (make_warm, make_local):
        shutil.rmtree(root / "test_tipc" / "output", ignore_errors=True)
        settings = Settings(root, root / "test_tipc" / "output", jobs=2)
        begin = time.perf_counter()
        ran = run_plans([plan], settings, Silent(), maker)
        seconds.append(time.perf_counter() - begin)
        assert all(result and result.outcome.is_good for result in ran.results)
    return tuple(seconds)


def with_bash(plan: Plan, root: Path) -> None:
    """Run the commands of a plan one after the other, as its repo's bash does."""
    shutil.rmtree(root / "test_tipc" / "output", ignore_errors=True)
    lines = ["set -e"]
    for step in plan.steps:
        lines.append(f"mkdir -p {shlex.quote(os.path.dirname(step.log))}")  # noqa: PTH120 - a word
        given = [f"{name}={value}" for name, value in step.env.items() if value is not None]
        lines.append(f"{shlex.join(['env', *given, *step.argv])} > {shlex.quote(step.log)} 2>&1")
    subprocess.run(["bash", "-c", "\n".join(lines)], cwd=root, check=True)
