from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from tipcheck.errors import ToolError
from tipcheck.step_runner.fingerprint import Fingerprint
from tipcheck.step_runner.ledger import Ledger
from tipcheck.step_runner.outcome import Outcome, StepResult
from tipcheck.step_runner.records import Finish, NewRun, Start

if TYPE_CHECKING:
    from pathlib import Path

A, B = ("plan", "a"), ("plan", "b")
PRINT = Fingerprint(
    arguments={"command": "1"},
    environment={"K": "2"},
    config={"c.txt": "3"},
    code={"train.py": "4"},
    data={"/data": "5"},
    program={"python": "3.11"},
)


def new(*where: tuple[str, str], command: str = "cmd") -> NewRun:
    return NewRun(command, "title", [(each, "train") for each in where], 100.0, 42)


def passed(step: str) -> StepResult:
    return StepResult(step, Outcome.PASSED, exit_code=0, seconds=1.5, log="x.log", note="n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.sqlite"


def test_a_run_is_remembered(path: Path) -> None:
    with Ledger(path) as ledger:
        run = ledger.begin(new(A, B), None)
        ledger.started(run, [Start(ledger.next_attempt(), A, 101.0, "x.log", PRINT)])
        ledger.ended(run, Finish(A, passed("a"), 102.0, 1, PRINT.parts()))
        ledger.ended(run, Finish(B, StepResult("b", Outcome.BLOCKED, "needs a"), 103.0))
        ledger.end(run, "finished", 104.0)
    with Ledger(path) as ledger:
        [row] = ledger.runs()
        assert (row.id, row.state, row.ended, row.pid) == (run, "finished", 104.0, 42)
        assert ledger.results(run) == [
            (A, passed("a")),
            (B, StepResult("b", Outcome.BLOCKED, "needs a")),
        ]
        assert ledger.attempts(run) == [(A, "passed")]
        assert ledger.unfinished("cmd") is None
        known = ledger.passes(None, [A, B])
        assert list(known) == [A]
        assert (known[A].result, known[A].ended) == (passed("a"), 102.0)
        assert known[A].fingerprint == PRINT.parts()


def test_an_unfinished_run_of_the_same_command_is_found(path: Path) -> None:
    with Ledger(path) as ledger:
        run = ledger.begin(new(A, B), None)
        ledger.begin(new(A, command="other"), None)
        found = ledger.unfinished("cmd")
        assert found is not None
        assert found.id == run
        assert ledger.unfinished("never") is None


def test_a_continued_run_keeps_what_it_has_and_follows_the_plan(path: Path) -> None:
    c = ("plan", "c")
    with Ledger(path) as ledger:
        run = ledger.begin(new(A, B), None)
        ledger.ended(run, Finish(A, passed("a"), 102.0, fingerprint=PRINT.parts()))
        assert ledger.begin(new(c, A), run) == run
        assert ledger.results(run) == [(c, None), (A, passed("a"))]
        assert list(ledger.passes(run, [A, B, c])) == [A]


def test_only_the_latest_end_of_a_step_counts(path: Path) -> None:
    with Ledger(path) as ledger:
        first = ledger.begin(new(A), None)
        ledger.ended(first, Finish(A, passed("a"), 1.0, fingerprint=PRINT.parts()))
        second = ledger.begin(new(A), None)
        assert list(ledger.passes(None, [A])) == [A], "the new run has no end of it yet"
        ledger.ended(second, Finish(A, StepResult("a", Outcome.FAILED), 2.0))
        assert ledger.passes(None, [A]) == {}
        assert list(ledger.passes(first, [A])) == [A]


def test_attempts_without_an_end_are_found_again(path: Path) -> None:
    with Ledger(path) as ledger:
        run = ledger.begin(new(A, B), None)
        ledger.started(run, [Start(1, A, 5.0, "a.log", PRINT), Start(2, B, 6.0, "b.log", PRINT)])
        ledger.interrupted(2, 7.0)
        [left] = ledger.open_attempts()
        assert (left.attempt, left.run, left.where, left.log) == (1, run, A, "a.log")
        assert left.fingerprint == PRINT.parts()
        assert ledger.next_attempt() == 3


def test_parts_of_fingerprints_are_stored_once(path: Path) -> None:
    with Ledger(path) as ledger:
        run = ledger.begin(new(A, B), None)
        ledger.started(run, [Start(n, A, 5.0, "a.log", PRINT) for n in range(1, 50)])
    with sqlite3.connect(path) as base:
        assert base.execute("SELECT COUNT(*) FROM content").fetchone()[0] == 5
    base.close()


def test_a_file_that_is_no_ledger(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("this is not a database, and long enough to be sure of it" * 10)
    with pytest.raises(ToolError, match="cannot use this ledger: file is not a database"):
        Ledger(path)


def test_a_ledger_of_another_version(path: Path) -> None:
    with Ledger(path):
        pass
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA user_version = 99")
    base.close()
    with pytest.raises(ToolError, match="another version of tipcheck"):
        Ledger(path)


def test_a_place_where_no_ledger_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="cannot use this ledger"):
        Ledger(tmp_path / "file" / "ledger.sqlite")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ToolError, match="unable to open"):
        Ledger(tmp_path / "folder")


def test_a_write_that_fails_is_an_error_with_a_place(path: Path) -> None:
    with Ledger(path) as ledger:
        run = ledger.begin(new(A), None)
        other = sqlite3.connect(path)
        other.execute("DROP TABLE attempt")
        other.commit()
        other.close()
        with pytest.raises(ToolError, match=r"ledger\.sqlite: cannot use this ledger: no such tab"):
            ledger.started(run, [Start(1, A, 5.0, "a.log", PRINT)])
