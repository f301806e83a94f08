"""What the engine's tests share: jobs, plans, and the proof that no process was left behind."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tipcheck.config_plans import Plan, Step
from tipcheck.step_runner.contract import Job
from tipcheck.step_runner.runner import run_plans
from tipcheck.step_runner.settings import Ran, Settings
from tipcheck.step_runner.watcher import Beginning, Silent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tipcheck.step_runner.outcome import StepResult
    from tipcheck.step_runner.task import Task

MARK = "TIPCHECK_TEST_MARK"


def marked_processes(mark: str) -> list[str]:
    """Return every living process that carries a mark in its environment."""
    needle = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if needle in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def wait_until(true: Callable[[], object], seconds: float = 120.0) -> bool:
    """Wait for a condition; the time is for a machine with much else to do."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.01)
    return bool(true())


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Marks every process that the test starts; none of them may outlive it."""
    word = uuid.uuid4().hex
    monkeypatch.setenv(MARK, word)
    yield word
    assert wait_until(lambda: not marked_processes(word)), marked_processes(word)


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Any]:
    """Three nodes of Ray's own fixture, all of them on this machine; the last has two GPUs."""
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'ray>=2.40'")
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - where Ray is installed

    word = os.environ.pop(MARK, None)  # the cluster outlives the test that it is made in
    head = {"num_cpus": 0, "include_dashboard": False}
    running = Cluster(initialize_head=True, head_node_args=head)
    for gpus in (0, 0, 2):
        running.add_node(num_cpus=2, num_gpus=gpus)
    running.wait_for_nodes()
    ray.init(address=running.address, log_to_driver=False, logging_level="error")
    if word is not None:
        os.environ[MARK] = word
    yield running
    ray.shutdown()
    running.shutdown()


@pytest.fixture
def ray_engine(ray_cluster: Any, mark: str) -> Iterator[Any]:
    from tipcheck.step_runner.ray_engine import RayEngine  # noqa: PLC0415 - where Ray is installed

    with RayEngine() as engine:
        yield engine


@dataclass
class Jobs:
    """Makes jobs whose logs are in one folder."""

    folder: Path

    def shell(self, code: str, **more: object) -> Job:
        return self.make("sh", "-c", code, **more)

    def make(self, *argv: str, **more: object) -> Job:
        fields: dict[str, object] = {
            "key": "job",
            "argv": argv,
            "env": dict(os.environ),
            "cwd": str(self.folder),
            "log": str(self.folder / "logs" / "job.log"),
            "grace": 0.3,
            **more,
        }
        return Job(**fields)  # type: ignore[arg-type]

    def read(self, job: Job) -> str:
        return Path(job.log).read_text("utf-8", "replace")


@pytest.fixture
def jobs(tmp_path: Path, mark: str) -> Jobs:
    return Jobs(tmp_path)


class Witness(Silent):
    """A watcher that remembers what it was told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.beginning: Beginning | None = None
        self.parallel = 0
        self.most_parallel = 0

    def began(self, beginning: Beginning) -> None:
        self.beginning = beginning

    def started(self, task: Task) -> None:
        self.events.append(("started", task.step.id))
        self.parallel += 1
        self.most_parallel = max(self.parallel, self.most_parallel)

    def skipped(self, task: Task, result: StepResult) -> None:
        self.events.append((result.outcome.value, task.step.id))

    def runs_again(self, task: Task, why: str) -> None:
        self.events.append((why, task.step.id))

    def finished(self, task: Task, result: StepResult) -> None:
        self.events.append((result.outcome.value, task.step.id))
        if result.outcome.value != "blocked":
            self.parallel -= 1

    def of(self, step: str) -> list[str]:
        return [event for event, name in self.events if name == step]


@dataclass
class Chain:
    """A small model repo: makes plans out of shell code, and runs them."""

    root: Path
    plans: list[Plan] = field(default_factory=list)

    def step(self, name: str, code: str, *needs: str, **more: object) -> Step:
        fields: dict[str, object] = {
            "id": name,
            "stage": "train",
            "argv": ("sh", "-c", code),
            "log": f"logs/{name}.log",
            "needs": needs,
            **more,
        }
        return Step(**fields)  # type: ignore[arg-type]

    def plan(self, *steps: Step, config: str = "config.txt") -> Plan:
        return Plan(config, "lite", "test", "model", steps)

    def run(self, *steps: Step, **settings: object) -> tuple[Ran, Witness]:
        return self.run_plans([self.plan(*steps)], **settings)

    def run_plans(self, plans: list[Plan], **settings: object) -> tuple[Ran, Witness]:
        fields: dict[str, object] = {
            "root": self.root,
            "output": self.root / "out",
            "grace": 0.3,
            **settings,
        }
        witness = Witness()
        return run_plans(plans, Settings(**fields), witness), witness  # type: ignore[arg-type]

    def outcomes(self, ran: Ran) -> dict[str, str]:
        return {
            task.step.id: result.outcome.value if result else "none"
            for task, result in zip(ran.tasks, ran.results, strict=True)
        }


@pytest.fixture
def chain(tmp_path: Path, mark: str) -> Chain:
    (tmp_path / "config.txt").write_text("model_name:model\n")
    return Chain(tmp_path)
