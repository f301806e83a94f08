"""The durable record of runs: what resume, history and reports read.

SQLite with a write-ahead log, one file per output folder. Every change is one transaction, so a
kill at any moment leaves either all of it or nothing. A disk that a step has filled up is no reason
to lose what happened: the space for a run is written to once when it begins, so that the file
system has given it away already.

Tables: ``run`` (one row per run), ``step`` (the latest state of each step of a run), ``attempt``
(every start of a step, so that one can see that nothing that passed ran again), ``content`` (the
parts of fingerprints, each stored once).
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, TypeVar

from tipcheck.errors import ToolError
from tipcheck.step_runner.fingerprint import Part, digest
from tipcheck.step_runner.outcome import Outcome, StepResult
from tipcheck.step_runner.records import Finish, NewRun, OpenAttempt, Pass, RunRow, Start, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

T = TypeVar("T")

VERSION = 1
_RESERVED, _RESERVED_PER_STEP = 1_200_000, 1_000
_CHECKPOINT_PAGES = 250
_STORED_PARTS = ("config", "code", "data", "program", "environment")

_SCHEMA = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY, command TEXT NOT NULL, title TEXT NOT NULL,
    started REAL NOT NULL, ended REAL, state TEXT NOT NULL, pid INTEGER NOT NULL
);
CREATE TABLE step (
    run INTEGER NOT NULL, plan TEXT NOT NULL, step TEXT NOT NULL, position INTEGER NOT NULL,
    stage TEXT NOT NULL, outcome TEXT, reason TEXT NOT NULL DEFAULT '', exit_code INTEGER,
    signal TEXT, seconds REAL NOT NULL DEFAULT 0, peak_memory INTEGER, log TEXT NOT NULL DEFAULT '',
    ended REAL, fingerprint TEXT, note TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (run, plan, step)
) WITHOUT ROWID;
CREATE TABLE attempt (
    id INTEGER PRIMARY KEY, run INTEGER NOT NULL, plan TEXT NOT NULL, step TEXT NOT NULL,
    started REAL NOT NULL, ended REAL, outcome TEXT, log TEXT NOT NULL, fingerprint TEXT NOT NULL
);
CREATE TABLE room (body BLOB);
CREATE TABLE content (digest TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX step_history ON step (plan, step, run);
"""


class Ledger:
    """The open ledger of one output folder."""

    def __init__(self, path: Path) -> None:
        """Open a ledger; make it when it is missing.

        Raises:
            ToolError: the file is no ledger, or of another version of tipcheck.
        """
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(path, isolation_level=None, timeout=10)
        except (OSError, sqlite3.Error) as error:
            raise self._error(str(error)) from None
        try:
            self._prepare()
        except (sqlite3.Error, ToolError) as error:
            self._base.close()
            raise self._error(str(error)) from None
        self._stored: set[str] = set()

    def _prepare(self) -> None:
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = NORMAL")
        self._base.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        version = self._base.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._base.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        elif version != VERSION:
            raise ToolError(f"written by another version of tipcheck (layout {version})")

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def __enter__(self) -> Ledger:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Runs --------------------------------------------------------------------------------------

    def unfinished(self, command: str) -> RunRow | None:
        """Return the latest run of a command, if it never finished."""
        row = self._base.execute(
            "SELECT * FROM run WHERE command = ? ORDER BY id DESC LIMIT 1", (command,)
        ).fetchone()
        return RunRow(*row) if row and row[5] != "finished" else None

    def runs(self) -> list[RunRow]:
        """Return every run, the oldest first."""
        return [RunRow(*row) for row in self._base.execute("SELECT * FROM run ORDER BY id")]

    def begin(self, new: NewRun, continued: int | None) -> int:
        """Begin a run, or go on with the unfinished one of that id; returns the run's id."""

        def work() -> int:
            if continued is None:
                run = self._base.execute(
                    "INSERT INTO run (command, title, started, state, pid) "
                    "VALUES (?, ?, ?, 'running', ?)",
                    (new.command, new.title, new.started, new.pid),
                ).lastrowid
            else:
                run = continued
                self._base.execute(
                    "UPDATE run SET state = 'running', ended = NULL, pid = ? WHERE id = ?",
                    (new.pid, run),
                )
                self._forget_steps_not_in(run, {where for where, _ in new.steps})
            self._base.executemany(
                "INSERT INTO step (run, plan, step, position, stage) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET position = excluded.position, stage = excluded.stage",
                [
                    (run, *where, position, stage)
                    for position, (where, stage) in enumerate(new.steps)
                ],
            )
            return int(run or 0)

        self._make_room(_RESERVED + _RESERVED_PER_STEP * len(new.steps))
        return self._write(work)

    def _make_room(self, size: int) -> None:
        """Have the file and its write-ahead log take up free space for what is to come."""
        self._write(lambda: self._base.execute("INSERT INTO room VALUES (zeroblob(?))", (size,)))
        self._base.execute("PRAGMA wal_checkpoint(FULL)")
        self._write(lambda: self._base.execute("DELETE FROM room"))

    def _forget_steps_not_in(self, run: int, known: set[Where]) -> None:
        rows = self._base.execute("SELECT plan, step FROM step WHERE run = ?", (run,)).fetchall()
        gone = [(run, *row) for row in rows if row not in known]
        self._base.executemany("DELETE FROM step WHERE run=? AND plan=? AND step=?", gone)

    def end(self, run: int, state: str, now: float) -> None:
        """Say that a run has ended: ``finished`` or ``interrupted``."""
        self._write(
            lambda: self._base.execute(
                "UPDATE run SET state = ?, ended = ? WHERE id = ?", (state, now, run)
            )
        )

    # Steps -------------------------------------------------------------------------------------

    def next_attempt(self) -> int:
        """Return the first free attempt number."""
        row = self._base.execute("SELECT COALESCE(MAX(id), 0) + 1 FROM attempt").fetchone()
        return int(row[0])

    def started(self, run: int, starts: Iterable[Start]) -> None:
        """Write down that steps are about to start."""

        def work() -> None:
            for start in starts:
                self._base.execute(
                    "INSERT INTO attempt (id, run, plan, step, started, log, fingerprint) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        start.attempt,
                        run,
                        *start.where,
                        start.started,
                        start.log,
                        self._store(start.fingerprint.parts()),
                    ),
                )

        self._write(work)

    def ended(self, run: int, finish: Finish) -> None:
        """Write down how a step of a run ended."""

        def work() -> None:
            parts = finish.fingerprint
            stored = None if parts is None else self._store(parts)
            self._base.execute(
                "UPDATE step SET outcome=?, reason=?, exit_code=?, signal=?, seconds=?, "
                "peak_memory=?, log=?, note=?, ended=?, fingerprint=? "
                "WHERE run=? AND plan=? AND step=?",
                (*_columns(finish.result), finish.ended, stored, run, *finish.where),
            )
            if finish.attempt:
                self._base.execute(
                    "UPDATE attempt SET ended = ?, outcome = ? WHERE id = ?",
                    (finish.ended, finish.result.outcome.value, finish.attempt),
                )

        self._write(work)

    def interrupted(self, attempt: int, now: float) -> None:
        """Write down that an attempt was ended because the run stops; the step has no outcome."""
        self._write(
            lambda: self._base.execute("UPDATE attempt SET ended=? WHERE id=?", (now, attempt))
        )

    def open_attempts(self) -> list[OpenAttempt]:
        """Return the attempts of all runs whose end is not written down."""
        rows = self._base.execute(
            "SELECT id, run, plan, step, started, log, fingerprint FROM attempt WHERE ended IS NULL"
        ).fetchall()
        return [
            OpenAttempt(row[0], row[1], (row[2], row[3]), row[4], row[5], self._load(row[6]))
            for row in rows
        ]

    def passes(self, run: int | None, wanted: Iterable[Where]) -> dict[Where, Pass]:
        """Return the latest end of each step that was a pass, of one run or of all of them.

        Args:
            run: look into this run only; None looks into the latest run that ended the step.
            wanted: the steps of interest.
        """
        query = (
            "SELECT run, step, outcome, reason, exit_code, signal, seconds, peak_memory, log, "
            "note, ended, fingerprint FROM step "
            "WHERE plan = ? AND step = ? AND outcome IS NOT NULL "
            "AND (? IS NULL OR run = ?) ORDER BY run DESC LIMIT 1"
        )
        found: dict[Where, Pass] = {}
        for where in wanted:
            row = self._base.execute(query, (*where, run, run)).fetchone()
            if row and row[11] is not None:
                found[where] = Pass(row[0], _result(row[1:10]), row[10], self._load(row[11]))
        return found

    def results(self, run: int) -> list[tuple[Where, StepResult | None]]:
        """Return the steps of a run in order, each with its end, or None when it has none."""
        rows = self._base.execute(
            "SELECT plan, step, outcome, reason, exit_code, signal, seconds, peak_memory, log, "
            "note FROM step WHERE run = ? ORDER BY position",
            (run,),
        )
        return [((row[0], row[1]), _result(row[1:]) if row[2] else None) for row in rows]

    def attempts(self, run: int) -> list[tuple[Where, str | None]]:
        """Return every attempt of a run in order, with its outcome if it had one."""
        rows = self._base.execute(
            "SELECT plan, step, outcome FROM attempt WHERE run = ? ORDER BY id", (run,)
        )
        return [((row[0], row[1]), row[2]) for row in rows]

    # Storage -----------------------------------------------------------------------------------

    def _store(self, parts: Mapping[str, Part]) -> str:
        """Store a fingerprint's parts, each once, and return what refers to them."""
        names: dict[str, str] = {}
        for name, part in parts.items():
            if name not in _STORED_PARTS:
                names[name] = json.dumps(dict(part))
                continue
            names[name] = digest(dict(part))
            if names[name] not in self._stored:
                self._base.execute(
                    "INSERT OR IGNORE INTO content VALUES (?, ?)",
                    (names[name], json.dumps(dict(part))),
                )
                self._stored.add(names[name])
        return json.dumps(names)

    def _load(self, text: str) -> dict[str, Part]:
        parts: dict[str, Part] = {}
        for name, value in json.loads(text).items():
            body = value
            if name in _STORED_PARTS:
                row = self._base.execute("SELECT body FROM content WHERE digest = ?", (value,))
                body = row.fetchone()[0]
            parts[name] = json.loads(body)
        return parts

    def _write(self, work: Callable[[], T]) -> T:
        """Do some work as one transaction."""
        try:
            self._base.execute("BEGIN IMMEDIATE")
            value = work()
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._error(str(error)) from None
        return value

    def _error(self, what: str) -> ToolError:
        return ToolError(
            f"cannot use this ledger: {what}",
            where=str(self._path),
            hint="make room, or choose another folder with --output",
        )


def _columns(result: StepResult) -> tuple[object, ...]:
    return (
        result.outcome.value,
        result.reason,
        result.exit_code,
        result.signal,
        result.seconds,
        result.peak_memory_bytes,
        result.log,
        result.note,
    )


def _result(columns: Sequence[object]) -> StepResult:
    step, outcome, *rest = columns
    return StepResult(str(step), Outcome(outcome), *rest)  # type: ignore[arg-type] # by our schema
