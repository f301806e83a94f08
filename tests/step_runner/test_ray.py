"""The engine ``ray`` on three nodes of Ray's own cluster fixture, all of them on this machine."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.step_runner.conftest import Chain, Jobs, Witness, marked_processes, wait_until
from tests.step_runner.test_engines import collect, run_one, several
from tipcheck import wire
from tipcheck.config_plans import Plan
from tipcheck.step_runner.ledger import Ledger
from tipcheck.step_runner.runner import run_plans
from tipcheck.step_runner.settings import Settings

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'ray>=2.40'")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # Ray's own
    pytest.mark.slow,
]


@pytest.fixture
def cluster(ray_cluster: Any) -> Any:
    return ray_cluster


@pytest.fixture
def engine(ray_engine: Any) -> Any:
    return ray_engine


def test_steps_of_a_chain_stay_on_a_node_and_chains_are_spread(engine: Any, jobs: Jobs) -> None:
    for n in range(6):
        for step in range(2):
            job = jobs.make("true", key=f"{n}-{step}", chain=f"c{n}", log=str(jobs.folder / "x"))
            engine.start(job)
    collect(engine, 12, 60)
    nodes = [engine._chains[f"c{n}"].node for n in range(6)]
    assert sorted(nodes.count(node) for node in set(nodes)) == [2, 2, 2]


def test_with_a_shared_file_system_a_chain_stays_nowhere(cluster: Any, jobs: Jobs) -> None:
    from tipcheck.step_runner.ray_engine import Cluster, RayEngine  # noqa: PLC0415

    with RayEngine(Cluster(shared=True)) as engine:
        for job in several(jobs, ["sleep 0.3; echo here"] * 6, chain="c"):
            engine.start(job)
        ends = collect(engine, 6, 60)
        assert {end.exit_code for end in ends.values()} == {0}
        assert engine._chains["c"].node == ""


def test_a_step_gets_the_gpus_it_needs(engine: Any, jobs: Jobs) -> None:
    job = jobs.shell("echo $CUDA_VISIBLE_DEVICES", gpus=("0", "1"))
    assert run_one(engine, job).exit_code == 0
    assert sorted(jobs.read(job).strip().split(",")) == ["0", "1"]
    wide = jobs.shell("true", gpus=("0", "1", "2"))
    assert run_one(engine, wide).trouble == "no node of the cluster has a CPU and 3 GPUs for it"


def test_no_two_steps_on_one_gpu(engine: Any, jobs: Jobs) -> None:
    codes = ["date +%s.%N; echo $CUDA_VISIBLE_DEVICES; sleep 0.3; date +%s.%N"] * 4
    all_jobs = several(jobs, codes, gpus=("0",))
    for job in all_jobs:
        engine.start(job)
    collect(engine, 4, 60)
    spans = sorted(
        (lines[1], lines[0], lines[2]) for lines in map(str.split, map(jobs.read, all_jobs))
    )
    for one, other in itertools.pairwise(spans):
        assert one[0] != other[0] or other[1] >= one[2]


def test_the_log_is_live(engine: Any, jobs: Jobs) -> None:
    job = jobs.shell("echo begun; while [ ! -e go ]; do sleep 0.05; done; echo over")
    engine.start(job)
    assert wait_until(lambda: not engine.wait(0.1) and Path(job.log).exists())
    assert jobs.read(job) == "begun\n"
    (jobs.folder / "go").touch()
    assert collect(engine, 1)["job"].exit_code == 0
    assert jobs.read(job) == "begun\nover\n"


def test_a_long_log_comes_whole(engine: Any, jobs: Jobs) -> None:
    job = jobs.shell("seq 1 600000")
    assert run_one(engine, job).exit_code == 0
    assert jobs.read(job).splitlines() == [str(n) for n in range(1, 600001)]


def test_leaving_ends_what_runs(cluster: Any, jobs: Jobs, mark: str) -> None:
    from tipcheck.step_runner.ray_engine import RayEngine  # noqa: PLC0415

    with RayEngine() as engine:
        engine.start(jobs.shell("trap '' TERM; echo up; setsid sleep 600", grace=600))
        assert wait_until(lambda: not engine.wait(0.1) and marked_processes(mark))
    assert wait_until(lambda: not marked_processes(mark))


def test_the_machine_of_a_chain_is_remembered(cluster: Any, jobs: Jobs) -> None:
    from tipcheck.step_runner.ray_engine import Cluster, RayEngine, _Node  # noqa: PLC0415

    memory = jobs.folder / "machines.json"
    nodes = {"a": _Node("10.0.0.1", 1), "b": _Node("10.0.0.2", 8)}
    first = RayEngine(Cluster(memory=memory))
    assert first._choose("one", nodes) == "a"
    assert json.loads(memory.read_text()) == {"one": "10.0.0.1"}
    memory.write_text('{"one": "10.0.0.2", "two": "10.0.0.1", "three": "10.9.9.9"}')
    later = RayEngine(Cluster(memory=memory))
    assert [later._choose(chain, nodes) for chain in ("one", "two", "three")] == ["b", "a", "a"]
    memory.write_text('{"one": "10.')
    assert RayEngine(Cluster(memory=memory))._choose("one", nodes) == "a"


TOOL = Path(__file__).with_name("tool.py")


def command(cluster: Any, plan: Path) -> list[str]:
    words = [sys.executable, str(TOOL), "run", str(plan), "-j4", "--grace=0.2", "--output=out"]
    return [*words, "--engine=ray", f"--address={cluster.address}"]


def test_the_command_killed_and_given_again(cluster: Any, chain: Chain, mark: str) -> None:
    slow = "echo ran >> slow.txt; [ -e go ] || sleep 600"
    steps = [chain.step("a", "echo ran >> a.txt"), chain.step("b", slow, "a")]
    plan = chain.root / "plan.json"
    plan.write_text(wire.dumps(chain.plan(*steps)))
    tool = subprocess.Popen(command(cluster, plan), cwd=chain.root, stdout=subprocess.DEVNULL)
    assert wait_until((chain.root / "slow.txt").exists)
    tool.kill()
    tool.wait()
    assert wait_until(lambda: not marked_processes(mark)), "a killed tool leaves no step"
    (chain.root / "go").touch()
    done = subprocess.run(
        command(cluster, plan), cwd=chain.root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (chain.root / "a.txt").read_text() == "ran\n", "what had passed did not run again"
    assert (chain.root / "slow.txt").read_text() == "ran\nran\n"


def test_the_command_interrupted(cluster: Any, chain: Chain, mark: str) -> None:
    code = "trap 'echo bye; exit 0' TERM; touch up; while :; do sleep 0.05; done"
    plan = chain.root / "plan.json"
    plan.write_text(wire.dumps(chain.plan(chain.step("a", code))))
    tool = subprocess.Popen(command(cluster, plan), cwd=chain.root, stdout=subprocess.DEVNULL)
    assert wait_until((chain.root / "up").exists)
    tool.send_signal(signal.SIGINT)
    assert tool.wait(600) == 130
    assert "bye" in (chain.root / "logs" / "a.log").read_text()
    assert not marked_processes(mark)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nonsense", "ray://127.0.0.1:10001"])
def test_no_cluster_at_that_address(chain: Chain, address: str) -> None:
    plan = chain.root / "plan.json"
    plan.write_text(wire.dumps(chain.plan(chain.step("a", "true"))))
    words = [sys.executable, str(TOOL), "run", str(plan), "--engine=ray", f"--address={address}"]
    done = subprocess.run(words, cwd=chain.root, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "no Ray cluster: " in done.stderr


STEP = """
echo "$0 on $(cat $FILES/node)" >> $HISTORY
[ -z "$1" ] || [ -e "$FILES/$1" ] || { echo "lacks $1"; exit 4; }
sleep 0.2; touch "$FILES/$0"; echo "$0 done"
"""


def plans(chain: Chain, history: Path, files: str) -> list[Plan]:
    made = []
    for n in range(30):
        steps = [
            chain.step(
                f"{stage}{n}", "", *([f"{before}{n}"] if before else []),
                argv=("sh", "-c", STEP, f"{stage}{n}", f"{before}{n}" if before else ""),
                env={"HISTORY": str(history), "FILES": files},
            )
            for before, stage in (("", "train"), ("train", "export"), ("export", "infer"))
        ]  # fmt: skip
        made.append(chain.plan(*steps, config=f"config{n}.txt"))
    return made


def content(output: Path) -> list[object]:
    with Ledger(output / ".tipcheck" / "ledger.sqlite") as ledger:
        [run] = ledger.runs()
        return [
            (where, r and (r.outcome, r.reason, r.exit_code, r.signal, r.log, r.note))
            for where, r in ledger.results(run.id)
        ]


def test_what_made_the_files_fails_the_second_time(cluster: Any, engine: Any, jobs: Jobs) -> None:
    once = jobs.shell("[ ! -e made ] && touch made", key="a", chain="c")
    assert run_one(engine, once).exit_code == 0
    engine._chains["c"].node = "of a machine that is gone"
    end = run_one(engine, jobs.shell("echo never", key="b", chain="c"))
    assert "what made them failed when it ran again" in end.trouble


def test_a_node_that_dies(cluster: Any, chain: Chain, mark: str) -> None:
    """Thirty chains on three nodes, one node killed in the middle: as if nothing had happened."""
    from tipcheck.step_runner.ray_engine import RayEngine  # noqa: PLC0415

    files = chain.root / "files"
    files.mkdir()
    (files / "node").write_text("a node")
    history = chain.root / "history.txt"
    all_plans = plans(chain, history, str(files))

    class Killer(Witness):
        killed = False

        def finished(self, task: Any, result: Any) -> None:
            super().finished(task, result)
            if not self.killed and len([e for e in self.events if e[0] == "passed"]) >= 30:
                self.killed = True
                cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    killer = Killer()
    settings = Settings(chain.root, chain.root / "ray", jobs=8, grace=0.3, one_machine=False)
    run_plans(all_plans, settings, killer, lambda _journal, _lock: RayEngine())
    assert killer.killed
    began = [line.split()[0] for line in history.read_text().splitlines()]
    assert len(began) > 90, "what was lost ran again"
    assert set(began) == {
        f"{stage}{n}" for stage in ("train", "export", "infer") for n in range(30)
    }
    assert wait_until(lambda: not marked_processes(mark))

    run_plans(all_plans, Settings(chain.root, chain.root / "local", jobs=8), Witness())
    ledger = content(chain.root / "ray")
    assert ledger == content(chain.root / "local")
    assert len(ledger) == 90
    logs = [chain.root / "logs" / f"infer{n}.log" for n in range(30)]
    assert [log.read_text() for log in logs] == [f"infer{n} done\n" for n in range(30)]
