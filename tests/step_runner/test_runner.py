from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.step_runner.conftest import Chain, wait_until
from tipcheck.errors import ToolError, UsageError
from tipcheck.step_runner.interruption import Interruption
from tipcheck.step_runner.ledger import Ledger
from tipcheck.step_runner.runner import run_plans
from tipcheck.step_runner.settings import Settings
from tipcheck.step_runner.watcher import Silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcheck.step_runner.contract import End, Engine, Job


def ledger_of(chain: Chain) -> Ledger:
    return Ledger(chain.root / "out" / ".tipcheck" / "ledger.sqlite")


def test_every_outcome(chain: Chain) -> None:
    ran, witness = chain.run(
        chain.step("good", "echo fine"),
        chain.step("bad", "echo 'KeyError: k'; exit 2"),
        chain.step("after_bad", "true", "bad"),
        chain.step("after_that", "true", "after_bad", "good"),
        chain.step("crash", "kill -SEGV $$"),
        chain.step("slow", "sleep 600", stage="eval"),
        chain.step("hollow", "echo 'tipcheck: hollow: no op'"),
        chain.step("after_hollow", "true", "hollow"),
        jobs=3,
        limits={"eval": 0.3, "*": 30.0},
    )
    assert chain.outcomes(ran) == {
        "good": "passed",
        "bad": "failed",
        "after_bad": "blocked",
        "after_that": "blocked",
        "crash": "crashed",
        "slow": "timed out",
        "hollow": "hollow",
        "after_hollow": "blocked",
    }
    results = {result.step_id: result for result in ran.results if result}
    assert results["bad"].reason == "KeyError: k (exit code 2)"
    assert results["after_bad"].reason == "needs bad: failed"
    assert results["after_that"].reason == "needs after_bad: blocked"
    assert results["crash"].signal == "SIGSEGV"
    assert results["after_bad"].log == "logs/after_bad.log"
    assert results["good"].seconds > 0
    assert (results["good"].peak_memory_bytes or 0) > 0
    assert ("blocked", "after_that") in witness.events
    with ledger_of(chain) as ledger:
        assert [result for _, result in ledger.results(ran.run)] == list(ran.results)


def test_hollow_may_be_allowed(chain: Chain) -> None:
    ran, _ = chain.run(
        chain.step("hollow", "echo 'tipcheck: hollow: no op'"),
        chain.step("after", "true", "hollow"),
        allow_hollow=True,
    )
    assert chain.outcomes(ran) == {"hollow": "hollow", "after": "passed"}


def test_fail_fast_starts_nothing_more_but_lets_the_running_end(chain: Chain) -> None:
    ran, _ = chain.run(
        chain.step("bad", "sleep 0.1; exit 1"),
        chain.step("running", "sleep 0.5"),
        chain.step("after_bad", "true", "bad"),
        chain.step("never", "true"),
        jobs=2,
        keep_going=False,
    )
    assert chain.outcomes(ran) == {
        "bad": "failed",
        "running": "passed",
        "after_bad": "blocked",
        "never": "blocked",
    }
    assert ran.results[3] is not None
    assert ran.results[3].reason == "not started, because bad did not pass (--fail-fast)"


def test_environment_in_order_of_strength(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "outer")
    monkeypatch.setenv("B", "outer")
    monkeypatch.setenv("C", "outer")
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    chain.run(
        chain.step(
            "s",
            'echo "$A $B ${C-gone} $PYTHONUNBUFFERED"',
            env={"A": "plan", "B": "plan", "C": None},
        ),
        env={"B": "user"},
    )
    assert (chain.root / "logs/s.log").read_text() == "plan user gone 1\n"


def test_independent_steps_run_side_by_side_but_never_share_a_gpu(chain: Chain) -> None:
    code = (
        "for g in $GPUS; do mkdir gpu$g || exit 9; done; sleep 0.15; "
        "for g in $GPUS; do rmdir gpu$g; done"
    )
    steps = [
        chain.step(f"s{n}", code, gpus=tuple(gpus.split()), env={"GPUS": gpus})
        for n, gpus in enumerate(["0", "1", "0 1", "0", "1", "0 1"])
    ]
    ran, witness = chain.run(*steps, jobs=6)
    assert set(chain.outcomes(ran).values()) == {"passed"}
    assert witness.most_parallel == 2


def test_two_plans_whose_steps_have_the_same_names(chain: Chain) -> None:
    first = chain.plan(chain.step("s", "echo 1"))
    second = chain.plan(chain.step("s", "echo 2"), config="other.txt")
    ran, _ = chain.run_plans([first, second])
    assert [task.log.read_text() for task in ran.tasks] == ["1\n", "2\n"]


def test_a_plan_that_cannot_be_run_leaves_nothing_behind(chain: Chain) -> None:
    with pytest.raises(UsageError):
        chain.run(chain.step("a", "true", "nobody"))
    assert not (chain.root / "out").exists()


# Resuming --------------------------------------------------------------------------------------

COUNT = "echo x >> count_$0; cat"


def counted(chain: Chain, name: str, *needs: str, code: str = "true", **more: object) -> object:
    return chain.step(
        name, "", *needs, argv=("sh", "-c", f"echo x >> count_$0; {code}", name), **more
    )


def count(chain: Chain, name: str) -> int:
    path = chain.root / f"count_{name}"
    return len(path.read_text().split()) if path.exists() else 0


def test_a_finished_run_starts_anew(chain: Chain) -> None:
    steps = [chain.step("a", "echo x >> count_a")]
    first, _ = chain.run(*steps)
    second, _ = chain.run(*steps)
    assert second.run == first.run + 1
    assert count(chain, "a") == 2


def test_resume_skips_what_passed_and_says_so(chain: Chain) -> None:
    steps = [
        chain.step("a", "echo x >> count_a"),
        chain.step("b", "echo x >> count_b; test -e fixed", "a"),
        chain.step("c", "echo x >> count_c", "b"),
    ]
    first, _ = chain.run(*steps)
    assert list(chain.outcomes(first).values()) == ["passed", "failed", "blocked"]
    (chain.root / "fixed").write_text("")
    second, witness = chain.run(*steps, resume=True)
    assert list(chain.outcomes(second).values()) == ["skipped", "passed", "passed"]
    assert witness.of("a") == ["skipped"]
    assert second.results[0] is not None
    assert "nothing it depends on has changed" in second.results[0].reason
    assert [count(chain, name) for name in "abc"] == [1, 2, 1]
    third, _ = chain.run(*steps, resume=True)
    assert set(chain.outcomes(third).values()) == {"skipped"}


def test_what_needs_a_step_that_ran_again_runs_again(chain: Chain) -> None:
    (chain.root / "input").write_text("1")
    steps = [
        chain.step("a", "", argv=("cat", "input")),
        chain.step("b", "true", "a"),
        chain.step("c", "true"),
    ]
    chain.run(*steps)
    (chain.root / "input").write_text("2")
    ran, witness = chain.run(*steps, resume=True)
    assert chain.outcomes(ran) == {"a": "passed", "b": "passed", "c": "skipped"}
    assert witness.of("a")[0] == f"data changed: {chain.root / 'input'}"
    assert witness.of("b")[0] == "a ran again"


def test_what_the_chain_itself_wrote_later_is_no_change(chain: Chain) -> None:
    (chain.root / "shared").mkdir()
    steps = [
        chain.step("a", "", argv=("ls", "shared")),
        chain.step("b", "", "a", argv=("sh", "-c", "touch shared/b", "x", "shared")),
    ]
    chain.run(*steps)
    ran, _ = chain.run(*steps, resume=True)
    assert chain.outcomes(ran) == {"a": "skipped", "b": "skipped"}


def test_a_step_whose_log_is_gone_runs_again(chain: Chain) -> None:
    steps = [chain.step("a", "true")]
    chain.run(*steps)
    shutil.rmtree(chain.root / "logs")
    _, witness = chain.run(*steps, resume=True)
    assert witness.of("a") == ["its log is gone", "started", "passed"]


def test_a_hollow_step_is_never_skipped(chain: Chain) -> None:
    steps = [chain.step("a", "echo 'tipcheck: hollow: x'")]
    chain.run(*steps)
    _, witness = chain.run(*steps, resume=True)
    assert witness.of("a") == ["started", "hollow"]


def test_other_stages_of_the_same_configs_are_another_command(chain: Chain) -> None:
    a, b = chain.step("a", "true"), chain.step("b", "true", stage="infer")
    first, _ = chain.run(a, b)
    second, _ = chain.run(b)
    assert second.run == first.run + 1


# Interruption ----------------------------------------------------------------------------------


def interrupt_when(condition: object, *numbers: int) -> threading.Thread:
    def work() -> None:
        for number in numbers:
            wait_until(condition)  # type: ignore[arg-type]
            os.kill(os.getpid(), number)
            time.sleep(0.2)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_an_interrupted_run_goes_on_where_it_was(chain: Chain) -> None:
    steps = [
        chain.step("a", "echo x >> count_a"),
        chain.step("b", "echo x >> count_b; test -e fixed || sleep 600", "a"),
        chain.step("c", "echo x >> count_c", "b"),
    ]
    thread = interrupt_when((chain.root / "count_b").exists, signal.SIGINT)
    first, _ = chain.run(*steps)
    thread.join()
    assert first.interrupted_by == "SIGINT"
    assert list(chain.outcomes(first).values()) == ["passed", "none", "none"]
    (chain.root / "fixed").write_text("")
    second, witness = chain.run(*steps)
    assert second.run == first.run
    assert list(chain.outcomes(second).values()) == ["passed"] * 3
    assert witness.of("a") == ["passed"]
    assert witness.beginning is not None
    assert witness.beginning.continues_since == pytest.approx(first.started)
    assert [count(chain, name) for name in "abc"] == [1, 2, 1]
    with ledger_of(chain) as ledger:
        [row] = ledger.runs()
        assert row.state == "finished"
        assert [outcome for _, outcome in ledger.attempts(row.id)] == [
            "passed",
            None,
            "passed",
            "passed",
        ]


def test_a_second_signal_ends_everything_at_once(chain: Chain) -> None:
    thread = interrupt_when((chain.root / "up").exists, signal.SIGTERM, signal.SIGTERM)
    step = chain.step("a", "trap '' TERM; touch up; while :; do sleep 0.05; done")
    ran, _ = chain.run(step, grace=1e6)  # which is not waited for
    thread.join()
    assert ran.interrupted_by == "SIGTERM"


def test_signals_that_are_ignored_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interruption.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_outside_the_main_thread_no_signal_is_handled(chain: Chain) -> None:
    outcomes: list[dict[str, str]] = []

    def work() -> None:
        outcomes.append(chain.outcomes(chain.run(chain.step("a", "true"))[0]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert outcomes == [{"a": "passed"}]


# Kills -----------------------------------------------------------------------------------------


class DyingEngine:
    """An engine whose tool dies before the ends that it already has are written down."""

    name = "dying"

    def __init__(self, journal: Path, lines: Sequence[str]) -> None:
        self._journal = journal
        self._lines = lines

    def start(self, job: Job) -> None:
        Path(job.log).parent.mkdir(exist_ok=True)
        Path(job.log).write_text("output\n")

    def wait(self, timeout: float) -> Sequence[End]:  # noqa: ARG002 - the contract's
        self._journal.write_text("".join(f"{line}\n" for line in self._lines))
        raise ToolError("killed here")

    def stop(self) -> None:
        """Nothing runs."""


def die(chain: Chain, lines: Sequence[str], *steps: object) -> None:
    def make(journal: Path, _descriptor: int) -> AbstractContextManager[Engine]:
        return nullcontext(DyingEngine(journal, lines))

    settings = Settings(chain.root, chain.root / "out", jobs=3)
    with pytest.raises(ToolError, match="killed here"):
        run_plans([chain.plan(*steps)], settings, Silent(), make)  # type: ignore[arg-type]


def test_what_ended_while_the_tool_was_killed_is_known(chain: Chain) -> None:
    steps = [
        chain.step("a", "echo x >> count_a"),
        chain.step("b", "echo x >> count_b"),
        chain.step("c", "echo x >> count_c", "a"),
    ]
    die(chain, ['{"id": 1, "attempt": 1, "exit_code": 0, "seconds": 1}'], *steps)
    ran, witness = chain.run(*steps)
    assert list(chain.outcomes(ran).values()) == ["passed"] * 3
    assert witness.of("a") == ["passed"], "it had passed"
    assert witness.of("b") == ["started", "passed"], "nobody knows how it ended"
    assert [count(chain, name) for name in "abc"] == [0, 1, 1]


def test_the_end_of_a_step_of_another_command_is_not_lost(chain: Chain) -> None:
    a, b = chain.step("a", "echo x >> count_a"), chain.step("b", "true", stage="infer")
    die(chain, ['{"id": 1, "attempt": 1, "exit_code": 0}'], a)
    chain.run(b)
    ran, _ = chain.run(a)
    assert chain.outcomes(ran) == {"a": "passed"}
    assert count(chain, "a") == 0


def test_data_edited_after_the_kill_is_noticed(chain: Chain) -> None:
    path = chain.root / "input"
    path.write_text("1")
    step = chain.step("a", "", argv=("cat", "input"))
    die(chain, ['{"id": 1, "attempt": 1, "exit_code": 0, "seconds": 0.1}'], step)
    journal = chain.root / "out" / ".tipcheck" / "ends.jsonl"
    os.utime(journal, (time.time() - 60, time.time() - 60))
    path.write_text("22")
    _, witness = chain.run(step)
    assert witness.of("a")[0] == f"data changed: {path}"
