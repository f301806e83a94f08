"""The tool killed with SIGKILL at random moments, and resumed each time with the same command."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.step_runner.conftest import Chain, marked_processes, wait_until
from tipcheck import wire
from tipcheck.config_plans import Plan
from tipcheck.step_runner.ledger import Ledger

TOOL = Path(__file__).with_name("tool.py")
STEP = """
echo "$0 begins" >> $HISTORY
case $0 in *3) setsid sh -c 'trap "" TERM; exec sleep 600' & esac
sleep 0.3
case $0 in s31) exit 3;; s30) kill -SEGV $$;; esac
"""


def long_plan(chain: Chain, history: str, steps: int = 40) -> Plan:
    return chain.plan(
        *(
            chain.step(
                f"s{n}",
                "",
                *([f"s{n - 4}"] if n >= 4 else []),
                argv=("sh", "-c", STEP, f"s{n}"),
                env={"HISTORY": history},
                gpus=("0",) if n % 5 == 0 else (),
            )
            for n in range(steps)
        )
    )


def start(chain: Chain, plan: Path, output: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(TOOL), "run", str(plan), "-j4", "--grace=0.2", f"--output={output}"],
        cwd=chain.root,
        stdout=subprocess.DEVNULL,
    )


def content(chain: Chain, output: str) -> list[object]:
    """Return what a ledger says of its only run, but for times and sizes."""
    with Ledger(chain.root / output / ".tipcheck" / "ledger.sqlite") as ledger:
        [run] = ledger.runs()
        assert run.state == "finished"
        return [
            (where, r and (r.outcome, r.reason, r.exit_code, r.signal, r.log, r.note))
            for where, r in ledger.results(run.id)
        ]


@pytest.mark.parametrize("kills", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments(chain: Chain, mark: str, kills: int) -> None:
    chance = random.Random(kills)  # noqa: S311 - no secret
    plan = chain.root / "plan.json"
    plan.write_text(wire.dumps(long_plan(chain, "history.txt")))
    killed = 0
    deadline = time.monotonic() + 600
    while killed < kills and time.monotonic() < deadline:
        process = start(chain, plan, "killed")
        try:
            process.wait(0.05 + chance.random() * (0.5 if kills < 10 else 0.3))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
            continue
        break
    assert killed == kills, "it ended before it could be killed often enough"
    process = start(chain, plan, "killed")
    assert process.wait(600) == 1, "some of its steps fail on purpose"
    assert wait_until(lambda: not marked_processes(mark))

    process = start(chain, plan, "whole")
    assert process.wait(600) == 1
    assert len({row for row in map(str, content(chain, "whole")) if "blocked" in row}) == 4
    ledgers = [content(chain, name) for name in ("killed", "whole")]
    assert ledgers[0] == ledgers[1]

    with Ledger(chain.root / "killed" / ".tipcheck" / "ledger.sqlite") as ledger:
        ended: set[object] = set()
        for where, outcome in ledger.attempts(1):
            assert where not in ended, f"{where} ran again after it had passed"
            if outcome == "passed":
                ended.add(where)


def test_a_run_in_progress_holds_its_folder(chain: Chain) -> None:
    plan = chain.root / "plan.json"
    plan.write_text(wire.dumps(chain.plan(chain.step("s", "touch up; sleep 600"))))
    first = start(chain, plan, "out")
    assert wait_until((chain.root / "up").exists)
    second = subprocess.run(
        [sys.executable, str(TOOL), "run", "plan.json", "--output=out"],
        cwd=chain.root,
        capture_output=True,
        text=True,
        check=False,
    )
    first.kill()
    first.wait()
    assert second.returncode == 3
    assert f"another run holds this folder: pid {first.pid}, since " in second.stderr


@pytest.fixture
def small_disk(chain: Chain) -> Iterator[Path]:
    """A file system of a few megabytes, where tests may mount one."""
    folder = chain.root / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_step_fills_the_disk(chain: Chain, small_disk: Path) -> None:
    plan = chain.plan(
        chain.step("fill", "cat /dev/zero > fill"),
        chain.step("noisy", "yes | head -c 3000000"),
        chain.step("bad", "echo 'ValueError: x'; exit 3"),
        *(chain.step(f"s{n}", "true") for n in range(100)),
        chain.step("free", "rm fill"),
    )
    (small_disk / "plan.json").write_text(wire.dumps(plan))
    done = subprocess.run(
        [sys.executable, str(TOOL), "run", "plan.json", "-j1", "--output=out"],
        cwd=small_disk,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    with Ledger(small_disk / "out" / ".tipcheck" / "ledger.sqlite") as ledger:
        results = {r.step_id: r for _, r in ledger.results(1) if r}
    assert len(results) == 104
    assert [name for name, r in results.items() if not r.outcome.is_good] == ["fill", "bad"]
    assert results["bad"].reason == "ValueError: x (exit code 3)"
    assert results["noisy"].note == "the log is incomplete: No space left on device"


@pytest.mark.slow
def test_ten_thousand_steps(chain: Chain) -> None:
    plan = chain.plan(*(chain.step(f"s{n}", "", argv=("true",)) for n in range(10_000)))
    (chain.root / "plan.json").write_text(wire.dumps(plan))
    code = (
        "import runpy, sys; sys.argv[0] = sys.argv.pop(1)\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        # Not getrusage: its maximum is inherited from the process that forked this one.
        "finally: print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0],"
        " file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(TOOL), "run", "plan.json", "-j4"],
        cwd=chain.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("GOOD  10,000 steps: 10,000 passed")
    assert int(done.stderr.split()[-1]) < 300 * 1024
