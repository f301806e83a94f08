"""What the engine costs per step, against ``xargs -P``: both start ``true`` many times.

The engine does more for each step (a log, a fingerprint, two entries in the ledger, a supervisor
that leaves no process behind); the number to watch is the difference per step.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from ratios import Row, Table
from tipcheck.config_plans import Plan, Step
from tipcheck.step_runner.runner import run_plans
from tipcheck.step_runner.settings import Settings
from tipcheck.step_runner.watcher import Silent

TITLE = "Overhead of a step"
STEPS, JOBS, ROUNDS = 1000, 2, 3
HOW = (
    f"{STEPS:,} steps whose command is `true`, {JOBS} at a time, by the engine `local` and by "
    "`xargs -P`: how much longer a step takes, and how many times as long."
)


def measure() -> Table:
    """Measure both, in turn."""
    engine, xargs = [], []
    for _ in range(ROUNDS):
        engine.append(with_engine())
        xargs.append(with_xargs())
    ours, theirs = statistics.median(engine), statistics.median(xargs)
    return Table(
        HOW,
        (
            Row("on top of xargs, per step", (ours - theirs) * 1000, "ms", "at most 10"),
            Row("per step, against xargs", ours / theirs, "x"),
        ),
    )


def with_engine() -> float:
    """Return the seconds per step that the engine takes."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        steps = tuple(Step(f"s{n}", "train", ("true",), f"logs/{n}.log") for n in range(STEPS))
        plan = Plan("config.txt", "bench", "bench", "true", steps)
        begin = time.perf_counter()
        ran = run_plans([plan], Settings(root, root / "out", jobs=JOBS), Silent())
        seconds = time.perf_counter() - begin
        assert all(result and result.outcome.is_good for result in ran.results)
    return seconds / STEPS


def with_xargs() -> float:
    """Return the seconds per step that ``xargs`` takes."""
    lines = "\n".join(map(str, range(STEPS)))
    begin = time.perf_counter()
    subprocess.run(
        ["xargs", "-P", str(JOBS), "-n", "1", "true"], input=lines, text=True, check=True
    )
    return (time.perf_counter() - begin) / STEPS
