"""Twenty exports of a small model: the engine ``warm`` against a bash loop over the same commands.

The loop is what a model repo's own test script does: one ``python export.py`` after the other, each
with its output in a log. The engine writes the same logs, and a ledger besides.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ratios import Row, Table
from tipcheck.config_plans import Plan, Step
from tipcheck.step_runner.runner import make_local, make_warm, run_plans
from tipcheck.step_runner.settings import Settings
from tipcheck.step_runner.watcher import Silent

TITLE = "Forked steps"
EXPORTS, ROUNDS = 20, 3
WAYS = (("warm", 2), ("warm", 1), ("local", 2))
LIMITS = {("warm", 2): "at least 5"}
HOW = (
    "Time of a bash loop over 20 `python export.py` commands, divided by the time that the engine "
    "takes for the same 20 steps, two at a time, its one import of paddle included; every export "
    f"is checked to be there and alike. The best of {ROUNDS} rounds, one way after the other in "
    "each: a busy machine only ever adds."
)
EXPORT = """
import sys
import paddle

paddle.seed(7)
net = paddle.nn.Sequential(
    paddle.nn.Conv2D(3, 8, 3), paddle.nn.BatchNorm2D(8), paddle.nn.ReLU(),
    paddle.nn.AdaptiveAvgPool2D(1), paddle.nn.Flatten(), paddle.nn.Linear(8, 10),
)
net.eval()
spec = [paddle.static.InputSpec([None, 3, 32, 32])]
paddle.jit.save(paddle.jit.to_static(net, input_spec=spec), f"{sys.argv[1]}/inference")
print("exported", sys.argv[1])
"""


def measure() -> Table:
    """Measure the loop and the engines in turn, some rounds of it."""
    times: dict[tuple[str, int], list[float]] = {}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "export.py").write_text(EXPORT, encoding="utf-8")
            times.setdefault(("bash", 1), []).append(with_bash(root))
            for engine, jobs in WAYS:
                times.setdefault((engine, jobs), []).append(with_engine(root, engine, jobs))
    best = {way: min(seconds) for way, seconds in times.items()}
    rows = (
        Row(
            f"bash loop / `--engine {engine} --jobs {jobs}`",
            best["bash", 1] / best[engine, jobs],
            "x faster",
            LIMITS.get((engine, jobs), ""),
        )
        for engine, jobs in WAYS
    )
    return Table(HOW, tuple(rows))


def command(name: str) -> list[str]:
    """Return the command of one export."""
    return [sys.executable, "export.py", name]


def with_bash(root: Path) -> float:
    """Return the seconds of the bash loop."""
    lines = [
        f"{shlex.join(command(f'bash/{n}'))} > bash_{n}.log 2>&1 || exit 1" for n in range(EXPORTS)
    ]
    begin = time.perf_counter()
    subprocess.run(["bash", "-c", "\n".join(lines)], cwd=root, check=True)
    return time.perf_counter() - begin


def with_engine(root: Path, engine: str, jobs: int) -> float:
    """Return the seconds of the same steps through an engine."""
    label = f"{engine}{jobs}"
    steps = tuple(
        Step(
            id=f"export{n}",
            stage="export",
            argv=tuple(command(f"{label}/{n}")),
            log=f"{label}_{n}.log",
        )
        for n in range(EXPORTS)
    )
    plan = Plan(config="config.txt", mode="bench", profile="bench", model_name="cnn", steps=steps)
    settings = Settings(root, root / f"ledger_{label}", jobs=jobs)
    begin = time.perf_counter()
    maker = make_warm if engine == "warm" else make_local
    ran = run_plans([plan], settings, Silent(), maker)
    seconds = time.perf_counter() - begin
    assert all(result and result.outcome.is_good for result in ran.results)
    expected = (root / "bash" / "0" / "inference.pdiparams").read_bytes()
    for n in range(EXPORTS):
        assert (root / label / str(n) / "inference.pdiparams").read_bytes() == expected
    return seconds
