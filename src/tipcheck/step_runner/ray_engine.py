"""The engine ``ray``: steps run on the machines of a Ray cluster.

Every step is a Ray task that asks for one CPU and as many GPUs as the step names. All steps of a
chain go to the node that the first one was given to, because their files are there, unless the
output is on a file system that all nodes share. When a node dies, its steps run elsewhere; those
that had passed there run again first, since what they wrote is lost.

The only file of the engine room that may import Ray.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tipcheck.errors import ToolError
from tipcheck.step_runner.contract import End, Job
from tipcheck.step_runner.ray_node import run_step

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_MOST_TRIES = 6
_PAUSE = 0.5
_ANSWER_WITHIN = 10.0
_LEAVE_WITHIN = 15.0
_NO_NODE_FOR = 60.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which cluster, and what is known of the run.

    Attributes:
        address: of the cluster, as Ray wants it.
        shared: whether all nodes share the file system that steps write to.
        widest: the most GPUs that a step of a chain needs, by chain.
        memory: file that says on which machine each chain's files are, for the next run.
    """

    address: str = "auto"
    shared: bool = False
    widest: Mapping[str, int] = field(default_factory=dict)
    memory: Path | None = None


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of the cluster: its machine's address, and how many CPUs it lends."""

    machine: str
    cpus: float


@dataclass
class _Chain:
    """Where a chain's files are.

    Attributes:
        node: id of the node, or an empty text.
        passed: jobs whose files are there.
        restoring: whether a job is on its way to another node, with what has to run again.
        held: jobs that wait until it has.
    """

    node: str = ""
    passed: list[Job] = field(default_factory=list)
    restoring: bool = False
    held: list[Job] = field(default_factory=list)


@dataclass
class _Task:
    """A job that Ray was given.

    Attributes:
        job: the job.
        stream: of its output, and its end.
        tries: how often it was given to Ray.
        restores: whether it runs what its chain needs first.
        written: whether its log has been begun.
    """

    job: Job
    stream: Any
    tries: int
    restores: bool
    written: bool = False


class _Switch:
    """Says on the cluster whether the run was asked to stop."""

    def __init__(self) -> None:
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    def stopped(self) -> bool:
        return self._stopped


def _on_node(before: tuple[Job, ...], job: Job, switch: Any) -> Any:  # noqa: ANN401 - Ray's
    """Run a step on the node that Ray has chosen for this task."""
    asked: list[Any] = []

    def stopped() -> bool:
        """Ask without waiting: a task that waits gives its CPU to another one."""
        if not asked:
            asked.append(switch.stopped.remote())
        if not ray.wait(asked, timeout=0)[0]:
            return False
        try:
            return bool(ray.get(asked.pop()))
        except ray.exceptions.RayError:
            return False  # the tool's machine is gone, and will take this task with it

    gpus = [str(number) for number in ray.get_gpu_ids()] if job.gpus else []
    yield from run_step(before, job, gpus, stopped)


class RayEngine:
    """Starts jobs on the nodes of a Ray cluster."""

    name = "ray"

    def __init__(self, cluster: Cluster | None = None) -> None:
        """Say which cluster."""
        self._cluster = cluster or Cluster()
        self._chains: dict[str, _Chain] = {}
        self._tasks: dict[Any, _Task] = {}
        self._ends: list[End] = []
        self._later: list[tuple[float, Job, int]] = []
        self._stopping = False
        self._ours = False
        self._machines = _remembered(self._cluster.memory)

    def __enter__(self) -> RayEngine:  # noqa: PYI034 - typing.Self needs Python 3.11
        if not ray.is_initialized():
            try:
                _knock(self._cluster.address)
                ray.init(address=self._cluster.address, log_to_driver=False, logging_level="error")
            except (OSError, RuntimeError, ValueError) as error:
                raise ToolError(
                    f"no Ray cluster: {_first_line(error)}",
                    where=self._cluster.address,
                    hint="start one with `ray start --head`, or give --address",
                ) from None
            self._ours = True
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        self._switch = (
            ray.remote(_Switch).options(num_cpus=0, scheduling_strategy=here).remote()
        )  # on this machine: any other may die before the run is over
        self._remote = ray.remote(_on_node)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every job that still runs, at once."""
        streams = [task.stream for task in self._tasks.values()]
        for stream in streams:
            ray.cancel(stream, force=True)
        deadline = time.monotonic() + _LEAVE_WITHIN
        for stream in streams:
            with contextlib.suppress(ray.exceptions.RayError, StopIteration):
                while time.monotonic() < deadline:
                    ray.wait([stream], timeout=max(0.0, deadline - time.monotonic()))
                    ray.get(next(stream), timeout=1)
        self._tasks.clear()
        ray.kill(self._switch)
        if self._ours:
            ray.shutdown()

    def start(self, job: Job) -> None:
        """Give a job to Ray."""
        self._submit(job, 1)

    def stop(self) -> None:
        """Let every node end its steps, SIGTERM first."""
        self._stopping = True
        with contextlib.suppress(ray.exceptions.RayError):  # a second Ctrl-C still ends them
            ray.get(self._switch.stop.remote())
        for chain in self._chains.values():
            self._ends += [_stopped(job) for job in chain.held]
            chain.held.clear()

    def wait(self, timeout: float) -> Sequence[End]:
        """Return the ends that arrive within ``timeout`` seconds; at once when one does."""
        deadline = time.monotonic() + max(0.0, timeout)
        while True:
            self._try_again()
            ends, self._ends = self._ends, []
            left = 0.0 if ends else max(0.0, deadline - time.monotonic())
            if self._later:
                left = min(left, _PAUSE)
            if self._tasks:
                for stream in ray.wait([*self._tasks], timeout=left, fetch_local=True)[0]:
                    ends += self._hear(self._tasks[stream])
            elif not ends:
                time.sleep(left)
            if ends or time.monotonic() >= deadline:
                return ends

    # Where -------------------------------------------------------------------------------------

    def _try_again(self) -> None:
        """Submit what was lost a while ago; all of it when the run stops, to be turned down."""
        now = time.monotonic()
        due = [entry for entry in self._later if entry[0] <= now or self._stopping]
        self._later = [entry for entry in self._later if entry not in due]
        for _, job, tries in due:
            self._submit(job, tries)

    def _submit(self, job: Job, tries: int) -> None:
        if self._stopping:
            self._ends.append(_stopped(job))
            return
        chain = self._chains.setdefault(job.chain or job.key, _Chain())
        if chain.restoring:
            chain.held.append(job)
            return
        options: dict[str, Any] = {
            "num_cpus": 1,
            "num_gpus": len(job.gpus),
            "max_retries": 0,
            "num_returns": "streaming",
        }
        before: tuple[Job, ...] = ()
        if self._cluster.shared:
            options["scheduling_strategy"] = "SPREAD"
        else:
            nodes = self._nodes(max(len(job.gpus), self._cluster.widest.get(job.chain, 0)))
            if not nodes:
                trouble = f"no node of the cluster has a CPU and {len(job.gpus)} GPUs for it"
                self._ends.append(End(key=job.key, attempt=job.attempt, trouble=trouble))
                return
            if chain.node not in nodes:
                chain.node = self._choose(job.chain, nodes)
                before = tuple(chain.passed)
                chain.restoring = bool(before)
            strategy = NodeAffinitySchedulingStrategy(chain.node, soft=False)
            options["scheduling_strategy"] = strategy
        stream = self._remote.options(**options).remote(before, job, self._switch)
        self._tasks[stream] = _Task(job, stream, tries, bool(before))

    def _nodes(self, gpus: int) -> dict[str, _Node]:
        """Return the nodes that are alive and wide enough, waiting for one to come."""
        deadline = time.monotonic() + _NO_NODE_FOR
        while True:
            alive = [node for node in ray.nodes() if node["Alive"]]
            known = {
                node["NodeID"]: _Node(node["NodeManagerAddress"], float(node["Resources"]["CPU"]))
                for node in alive
                if node["Resources"].get("CPU", 0) >= 1 and node["Resources"].get("GPU", 0) >= gpus
            }
            if known or gpus or time.monotonic() > deadline:
                return known
            time.sleep(0.5)

    def _choose(self, chain: str, nodes: Mapping[str, _Node]) -> str:
        """Return the node with the fewest chains, if need be of the machine with its files."""
        machine = self._machines.get(chain)
        there = {key: node for key, node in nodes.items() if node.machine == machine} or nodes
        chains = [chain.node for chain in self._chains.values()]
        chosen = min(there, key=lambda key: chains.count(key) / there[key].cpus)
        if chain and there[chosen].machine != machine:
            self._machines[chain] = there[chosen].machine
            if self._cluster.memory is not None:
                self._cluster.memory.write_text(json.dumps(self._machines), encoding="utf-8")
        return chosen

    # What comes back ---------------------------------------------------------------------------

    def _hear(self, task: _Task) -> list[End]:
        """Take the next piece that a node has sent."""
        try:
            said = ray.get(next(task.stream))
        except (ray.exceptions.RayTaskError, StopIteration) as error:
            last = str(error).strip().rpartition("\n")[2]
            trouble = f"the node could not run it: {last or 'it said nothing'}"
            return self._finish(
                task, End(key=task.job.key, attempt=task.job.attempt, trouble=trouble)
            )
        except ray.exceptions.RayError as error:
            return self._lose(task, type(error).__name__)
        if isinstance(said, End):
            return self._finish(task, said)
        self._write(task, said)
        return []

    def _write(self, task: _Task, piece: bytes) -> None:
        log = Path(task.job.log)
        if not task.written:
            log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab" if task.written else "wb") as file:
            file.write(piece)
        task.written = True

    def _finish(self, task: _Task, end: End) -> list[End]:
        del self._tasks[task.stream]
        if not task.written and not end.trouble:
            self._write(task, b"")
        chain = self._chains[task.job.chain or task.job.key]
        if end.exit_code == 0 and not end.cut:
            chain.passed.append(task.job)
        if task.restores:
            chain.restoring = False
        self._release(chain)
        return [end]

    def _lose(self, task: _Task, how: str) -> list[End]:
        """Run a job again whose node, or worker, has died."""
        del self._tasks[task.stream]
        chain = self._chains[task.job.chain or task.job.key]
        if task.restores:
            chain.node, chain.restoring = "", False
        if task.tries >= _MOST_TRIES:
            trouble = f"its node died {task.tries} times while it ran ({how})"
            self._release(chain)
            return [End(key=task.job.key, attempt=task.job.attempt, trouble=trouble)]
        pause = _PAUSE * 2 ** (task.tries - 1)  # until the cluster knows which node is dead
        self._later.append((time.monotonic() + pause, task.job, task.tries + 1))
        return []

    def _release(self, chain: _Chain) -> None:
        if chain.restoring:
            return
        held, chain.held = chain.held, []
        for job in held:
            self._submit(job, 1)


def _knock(address: str) -> None:
    """See whether someone is there: Ray ends the process when nobody is.

    Raises:
        OSError: nobody is.
        ValueError: it is no address of a cluster.
    """
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        raise ValueError("an address has the form HOST:PORT")
    socket.create_connection((host, int(port)), _ANSWER_WITHIN).close()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _remembered(memory: Path | None) -> dict[str, str]:
    """Return on which machine each chain's files are, as an earlier run has written it down."""
    try:
        known = json.loads(memory.read_text(encoding="utf-8")) if memory else {}
    except (OSError, ValueError):  # there was none, or it was killed while it wrote
        return {}
    return {str(chain): str(machine) for chain, machine in known.items()}


def _stopped(job: Job) -> End:
    return End(key=job.key, attempt=job.attempt, cut="stopped")
