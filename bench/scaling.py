"""How a run grows with the nodes of a Ray cluster, and what a step costs there.

The steps sleep, so that the machine under the nodes (all of them are on this one) is not what is
measured. Needs Ray: ``pip install 'ray>=2.40'``; it is no part of ``make bench``, which has to
run where Ray does not.

    python bench/scaling.py
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from ratios import Row, Table, markdown
from tipcheck.config_plans import Plan, Step
from tipcheck.step_runner.runner import EngineMaker, make_local, run_plans
from tipcheck.step_runner.settings import Settings
from tipcheck.step_runner.watcher import Silent

TITLE = "Ray cluster"
HOW = (
    "Chains of two steps that sleep 2 s each, 8 chains for each node of 2 CPUs: throughput with "
    "2, 3 and 4 nodes, divided by that with one; then the time of a run of 200 steps that do "
    "nothing, one at a time, divided by the steps, less the same for `--engine local`."
)
SLEEP = "2"
CPUS = 2
CHAINS = 8
TRIVIAL = 200


def measure() -> Table:
    """Measure with one node more at a time."""
    import ray  # noqa: PLC0415 - an extra
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    head = {"num_cpus": 0, "include_dashboard": False}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    rows = []
    try:
        cluster.add_node(num_cpus=CPUS)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        run(1, SLEEP, CPUS)  # starts the workers
        one = throughput(1)
        local = run(1, "0", 1, TRIVIAL, make_local)
        cost = (run(1, "0", 1, TRIVIAL) - local) / TRIVIAL
        for nodes, limit in ((2, "at least 1.7"), (3, "at least 2.4"), (4, "")):
            cluster.add_node(num_cpus=CPUS)
            cluster.wait_for_nodes()
            run(nodes * CPUS, SLEEP, nodes * CPUS)
            rows.append(Row(f"{nodes} nodes", throughput(nodes) / one, "x one node", limit))
        rows.append(Row("a step, more than in `local`", cost * 1000, "ms", "at most 20"))
    finally:
        ray.shutdown()
        cluster.shutdown()
    return Table(HOW, tuple(rows))


def throughput(nodes: int) -> float:
    """Return steps per second with as many chains as the nodes call for."""
    return 2 * CHAINS * nodes / run(CHAINS * nodes, SLEEP, CPUS * nodes, 2)


def run(
    chains: int, sleep: str, jobs: int, steps: int = 1, maker: EngineMaker | None = None
) -> float:
    """Return the seconds of a run of chains of steps, each step needing the one before."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        plans = [
            Plan(
                config=f"config{chain}.txt",
                mode="bench",
                profile="bench",
                model_name="sleep",
                steps=tuple(
                    Step(
                        id=f"s{n}",
                        stage="train",
                        argv=("sleep", sleep),
                        log=f"{chain}_{n}.log",
                        needs=(f"s{n - 1}",) if n else (),
                    )
                    for n in range(steps)
                ),
            )
            for chain in range(chains)
        ]
        settings = Settings(root, root / "out", jobs=jobs, one_machine=False)
        begin = time.perf_counter()
        ran = run_plans(plans, settings, Silent(), maker or with_ray)
        seconds = time.perf_counter() - begin
        assert all(result and result.outcome.is_good for result in ran.results)
    return seconds


def with_ray(_journal: Path, _lock: int) -> Any:
    """Make the engine on the cluster that this process is connected to."""
    from tipcheck.step_runner.ray_engine import RayEngine  # noqa: PLC0415

    return RayEngine()


if __name__ == "__main__":
    print(markdown(measure()))
