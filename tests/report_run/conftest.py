"""Reports of made-up runs, for what does not need a process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tipcheck.config_plans import Plan, Step
from tipcheck.report.run_result import RunReport, make_report
from tipcheck.step_runner.outcome import Outcome, StepResult
from tipcheck.step_runner.settings import Ran
from tipcheck.step_runner.task import make_tasks

AUTOLOG = """\
[2026/11/18 08:06:44] root INFO: ---------------------- Perf info ----------------------
[2026/11/18 08:06:44] root INFO:  total time spent(s): 99
[2026/11/18 08:06:45] root INFO: ---------------------- Env info ----------------------
[2026/11/18 08:06:45] root INFO:  OS_version: Debian 12
[2026/11/18 08:06:45] root INFO: [cls] ----------------------- Conf info -----------------------
[2026/11/18 08:06:45] root INFO: [cls] runtime_device: cpu
[2026/11/18 08:06:45] root INFO: [cls] model_name: mobilenet
[2026/11/18 08:06:45] root INFO: [cls] precision: fp32
[2026/11/18 08:06:45] root INFO:  batch_size: 1
[2026/11/18 08:06:45] root INFO:  input_shape: dynamic
[2026/11/18 08:06:45] root INFO:  cpu_rss(MB): 2060.8398, gpu_rss(MB): None, gpu_util: None%
[2026/11/18 08:06:45] root INFO:  total time spent(s): 0.3592
[2026/11/18 08:06:45] root INFO:  preprocess_time(ms): 0.5, inference_time(ms): 1.2e1, postprocess_time(ms): 0.1
"""  # noqa: E501 - lines of AutoLog


def step(name: str, stage: str = "train", **more: object) -> Step:
    fields: dict[str, object] = {
        "id": name,
        "stage": stage,
        "argv": ("python3", f"{name}.py", "--x=a b"),
        "log": f"out/model/lite/{name}.log",
        **more,
    }
    return Step(**fields)  # type: ignore[arg-type]


def result(name: str, outcome: Outcome, reason: str = "", **more: object) -> StepResult:
    fields: dict[str, object] = {
        "step_id": name,
        "outcome": outcome,
        "reason": reason,
        "seconds": 1.0,
        "peak_memory_bytes": 12_000_000,
        "log": f"out/model/lite/{name}.log",
        **more,
    }
    return StepResult(**fields)  # type: ignore[arg-type]


Make = Callable[..., RunReport]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes a report of steps and their results; logs given by name are written first."""

    def build(
        *pairs: tuple[Step, StepResult | None],
        logs: dict[str, str] | None = None,
        config: str = "configs/model/train_infer_python.txt",
        interrupted_by: str = "",
        allow_hollow: bool = False,
    ) -> RunReport:
        for name, text in (logs or {}).items():
            path = tmp_path / f"out/model/lite/{name}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        plan = Plan(config, "lite", "T", "model", tuple(each for each, _ in pairs))
        ran = Ran(
            run=3,
            tasks=make_tasks([plan], tmp_path),
            results=[end for _, end in pairs],
            started=1_700_000_000.0,
            seconds=61.0,
            interrupted_by=interrupted_by,
        )
        return make_report(ran, tmp_path, allow_hollow=allow_hollow)

    return build


@pytest.fixture
def everything(make: Make) -> RunReport:
    """A run in which everything happened that can."""
    return make(
        (step("train"), result("train", Outcome.PASSED, note="left 1 process(es) running")),
        (step("old"), result("old", Outcome.SKIPPED, "passed on Monday")),
        (
            step("bad", "export"),
            result("bad", Outcome.FAILED, "Cannot open file inference.pdmodel (exit code 1)"),
        ),
        (step("late", "eval"), result("late", Outcome.TIMED_OUT, "ended after its time limit")),
        (step("crash", "eval"), result("crash", Outcome.CRASHED, "died on SIGSEGV")),
        (step("amp"), result("amp", Outcome.HOLLOW, "no op in low precision")),
        (step("infer", "infer"), result("infer", Outcome.BLOCKED, "needs bad: failed", seconds=0)),
        (step("cpu", "infer"), result("cpu", Outcome.PASSED)),
        logs={"bad": "Cannot open\x1b[0m \x01\n", "cpu": AUTOLOG, "infer": "stale"},
    )
