"""What runs on a node of a Ray cluster: one step, in the care of a keeper of that node.

A Ray worker keeps one engine ``local`` for all steps that it is given one after the other. Limits,
endings and logs are therefore those of ``local``, and when the worker dies, of whatever reason, its
keeper's lifeline closes and the step is ended.

The step's output goes to a file of the node first and from there, a piece at a time, to whoever
iterates over ``run_step``. Imports nothing of Ray: its caller makes it a remote function.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import TipcheckError
from tipcheck.step_runner.contract import End, Job
from tipcheck.step_runner.local import LocalEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TICK = 0.1
_ASK_EVERY = 0.5
_PIECE = 1 << 20

_engines: list[LocalEngine] = []


def run_step(
    before: tuple[Job, ...], job: Job, gpus: list[str], stopped: Callable[[], bool]
) -> Iterator[bytes | End]:
    """Run a step; yield its output, piece by piece, and how it ended.

    Args:
        before: steps that made the files it needs on a node that has died; they run again first.
        job: the step.
        gpus: the devices that this node gives to it; empty leaves its environment as it is.
        stopped: whether the run was asked to stop.
    """
    with tempfile.TemporaryDirectory(prefix="tipcheck-") as folder:
        for earlier in before:
            [end] = [said for said in _run(earlier, gpus, folder, stopped) if isinstance(said, End)]
            if end.cut == "stopped":
                yield dataclasses.replace(end, key=job.key, attempt=job.attempt)
                return
            if end.exit_code != 0:
                trouble = (
                    f"the node with its files died, and what made them failed when it ran again "
                    f"({Path(earlier.log).name})"
                )
                yield End(key=job.key, attempt=job.attempt, trouble=trouble)
                return
        yield from _run(job, gpus, folder, stopped)


def _run(
    job: Job, gpus: list[str], folder: str, stopped: Callable[[], bool]
) -> Iterator[bytes | End]:
    log = Path(folder, "step.log")
    env = {**job.env, "CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else job.env
    try:
        engine = _engine()
        engine.start(dataclasses.replace(job, env=env, log=str(log)))
        read, asked, ends = 0, time.monotonic(), list(engine.wait(0))
        while not ends:
            ends = list(engine.wait(_TICK))
            piece = _read(log, read)
            read += len(piece)
            if piece:
                yield piece
            if time.monotonic() > asked + _ASK_EVERY:
                asked = time.monotonic()
                if stopped():
                    engine.stop()
    except TipcheckError as error:
        _discard()
        yield End(key=job.key, attempt=job.attempt, trouble=str(error))
        return
    except BaseException:
        _discard()  # its end must not be taken for that of the next job
        raise
    while piece := _read(log, read):
        read += len(piece)
        yield piece
    yield ends[0]


def _engine() -> LocalEngine:
    if not _engines:
        _engines.append(LocalEngine().__enter__())
    return _engines[0]


def _discard() -> None:
    """End the engine, and with it a job that nobody listens to any more."""
    while _engines:
        _engines.pop().__exit__(None, None, None)


def _read(log: Path, start: int) -> bytes:
    try:
        with log.open("rb") as file:
            file.seek(start, os.SEEK_SET)
            return file.read(_PIECE)
    except FileNotFoundError:
        return b""
