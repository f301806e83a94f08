"""The keeper runs here inside the test's process, with a thread in the role of the tool."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tests.step_runner.conftest import wait_until
from tipcheck.step_runner import keeper
from tipcheck.step_runner.local import read_journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.step_runner.conftest import Jobs
    from tipcheck.step_runner.contract import Job

# Python 3.12 warns of forks beside threads; here the threads belong to the tests.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD)


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    signal.set_wakeup_fd(-1)
    import gc  # noqa: PLC0415 - the keeper switched it off

    gc.unfreeze()
    gc.enable()


def serve(talk: Callable[[socket.socket, int], None], journal: Path | None = None) -> list[object]:
    """Run a keeper while ``talk`` gives it commands; return the records it reported."""
    ours, theirs = socket.socketpair()
    lifeline_read, lifeline = os.pipe()
    reports_read, reports = os.pipe()
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    descriptors = {
        "commands": theirs.detach(),
        "lifeline": lifeline_read,
        "reports": reports,
        "journal": -1 if journal is None else os.open(journal, flags),
        "hold": -1,
    }

    def tool() -> None:
        talk(ours, lifeline)
        ours.close()

    thread = threading.Thread(target=tool)
    thread.start()
    keeper.main([json.dumps(descriptors)])
    thread.join()
    for descriptor in (lifeline_read, lifeline, reports, descriptors["journal"]):
        if descriptor >= 0:
            os.close(descriptor)
    with os.fdopen(reports_read, "rb") as reader:
        return [json.loads(line) for line in reader.read().splitlines()]


def command(job: Job, number: int = 1) -> bytes:
    fields = {field.name: getattr(job, field.name) for field in dataclasses.fields(job)}
    return json.dumps({"start": {**fields, "id": number}}).encode() + b"\n"


def test_commands_may_arrive_in_pieces(jobs: Jobs) -> None:
    line = command(jobs.make("true", attempt=3))

    def talk(ours: socket.socket, _lifeline: int) -> None:
        ours.sendall(line[:50])
        ours.sendall(line[50:] + command(jobs.make("false", log=str(jobs.folder / "f.log")), 2))

    records = serve(talk)
    assert {record["id"]: record["exit_code"] for record in records} == {1: 0, 2: 1}  # type: ignore[index]


def test_stop_ends_every_step(jobs: Jobs) -> None:
    def talk(ours: socket.socket, _lifeline: int) -> None:
        ours.sendall(command(jobs.shell("sleep 600")))
        ours.sendall(b'{"stop": true}\n')

    [record] = serve(talk)
    assert record["cut"] == "stopped"  # type: ignore[index]


def test_the_journal_has_every_end_but_those_of_interrupted_steps(jobs: Jobs) -> None:
    path = jobs.folder / "ends.jsonl"

    def talk(ours: socket.socket, _lifeline: int) -> None:
        ours.sendall(command(jobs.make("true", attempt=5)))
        ours.sendall(command(jobs.shell("sleep 600", log=str(jobs.folder / "s.log")), 2))
        assert wait_until(lambda: [*read_journal(path)])
        ours.sendall(b'{"stop": true}\n')

    records = serve(talk, path)
    assert len(records) == 2
    [end] = read_journal(path)
    assert (end.attempt, end.exit_code) == (5, 0)


def test_a_journal_cut_off_by_a_kill_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "ends.jsonl"
    assert list(read_journal(path)) == []
    path.write_text('{"id": 1, "attempt": 1, "exit_code": 0}\nnonsense\n{"id": 2, "atte')
    assert [end.attempt for end in read_journal(path)] == [1]


def test_a_machine_without_processes_left(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    [record] = serve(lambda ours, _lifeline: ours.sendall(command(jobs.make("true"))))
    assert record["trouble"] == "cannot start a process: Resource temporarily unavailable"  # type: ignore[index]
