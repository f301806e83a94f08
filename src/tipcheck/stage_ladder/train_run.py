"""Trains the same model in dygraph, under ``to_static`` and in dygraph again, and compares.

The third training says whether the first can be repeated at all: where the user's code draws from a
generator of its own, a difference means nothing, and the verdict says so.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.isolation import run_worker
from tipcheck.compare.verdict import Status
from tipcheck.errors import UsageError
from tipcheck.stage_ladder.training import GRADIENT, StepJudge, TrainResult, TrainStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcheck.backends.isolation import WorkerEnd

_WORKER = "tipcheck.backends.layers.train_steps"
_WAYS = (("dygraph", False), ("to_static", True), ("again", False))


@dataclass(frozen=True, slots=True)
class Training:
    """What to train.

    Attributes:
        source: ``module:factory`` or ``file.py:factory``.
        path: folders to find it in.
        steps: how many to train.
        seed: where all random numbers begin.
        rtol: tolerance, as a share of an element and of the rms of its tensor.
        time_limit: seconds for each of the trainings.
    """

    source: str
    path: tuple[str, ...] = ()
    steps: int = 5
    seed: int = 0
    rtol: float = 1e-4
    time_limit: float = 600.0


def verify_training(training: Training) -> TrainResult:
    """Train both ways and return what came of it.

    Raises:
        UsageError: the factory cannot be used; the message says why.
    """
    with tempfile.TemporaryDirectory(prefix="tipcheck-train-") as name:
        folder = Path(name)
        with ThreadPoolExecutor(len(_WAYS)) as pool:
            ends = list(pool.map(lambda way: _train(training, folder / way[0], way[1]), _WAYS))
        for end in ends:
            for message in end.messages:
                if "no_parts" in message:
                    hint = "it returns (model, optimizer, loss, data); see `tipcheck verify --help`"
                    raise UsageError(message["no_parts"], where=training.source, hint=hint)
        return _Verdict(training, folder, ends).result()


def _train(training: Training, folder: Path, static: bool) -> WorkerEnd:  # noqa: FBT001
    folder.mkdir()
    request = {
        "source": training.source,
        "path": list(training.path),
        "static": static,
        "steps": training.steps,
        "seed": training.seed,
        "folder": str(folder),
    }
    return run_worker(_WORKER, request, time_limit=training.time_limit)


class _Verdict:
    """Puts the three trainings together."""

    def __init__(self, training: Training, folder: Path, ends: Sequence[WorkerEnd]) -> None:
        self._training = training
        self._folder = folder
        self._ends = dict(zip((way for way, _ in _WAYS), ends, strict=True))
        self._said = {way: list(end.messages) for way, end in self._ends.items()}

    def result(self) -> TrainResult:  # noqa: PLR0911 - one for each thing that can be wrong
        """Return the verdict."""
        told = (m["parameters"] for m in self._said["dygraph"] if "parameters" in m)
        parameters: list[str] = next(told, [])
        done = {way: self._steps_of(way) for way in self._said}
        both = min(len(done["dygraph"]), len(done["to_static"]))
        start = self._apart_at_start()
        if start:
            return self._make(Status.FAIL, start, ())
        judge = StepJudge(parameters, self._training.rtol)
        steps = tuple(self._judge(judge, number, "to_static") for number in range(both))
        repeats = self._repeats(parameters, min(both, len(done["again"])))
        trouble = self._trouble()
        first = next((step for step in steps if step.status is not Status.PASS), None)
        if repeats is False and first is not None:
            sentence = (
                "dygraph itself does not give the same twice from one seed, so nothing can be "
                "said; draw random numbers from paddle, numpy and random only"
            )
            return self._make(Status.SUSPECT, sentence, steps, repeats)
        data = self._data_parts(both)
        if data:
            return self._make(Status.FAIL, data, steps, repeats)
        if first is not None:
            return self._make(Status.FAIL, _sentence(first), steps, repeats)
        if trouble:
            return self._make(Status.CRASH, trouble, steps, repeats)
        if not steps:
            return self._make(Status.FAIL, "no step was trained: the data is empty", (), repeats)
        return self._make(Status.PASS, _agrees(steps), steps, repeats)

    def _make(
        self,
        status: Status,
        sentence: str,
        steps: tuple[TrainStep, ...],
        repeats: bool | None = None,  # noqa: FBT001 - a field
    ) -> TrainResult:
        training = self._training
        return TrainResult(
            source=training.source,
            status=status,
            sentence=sentence,
            steps=steps,
            seed=training.seed,
            rtol=training.rtol,
            repeats=repeats,
        )

    def _steps_of(self, way: str) -> list[dict[str, Any]]:
        return [message for message in self._said[way] if "loss" in message]

    def _judge(self, judge: StepJudge, number: int, other: str) -> TrainStep:
        file = f"step_{number}.npz"
        return judge.judge(number + 1, self._folder / "dygraph" / file, self._folder / other / file)

    def _repeats(self, parameters: Sequence[str], count: int) -> bool | None:
        if not count:
            return None
        judge = StepJudge(parameters, self._training.rtol)
        steps = [self._judge(judge, number, "again") for number in range(count)]
        return all(step.status is Status.PASS for step in steps)

    def _apart_at_start(self) -> str:
        """Return how the two models differ before the first step."""
        files = [self._folder / way / "before.npz" for way in ("dygraph", "to_static")]
        if not all(file.exists() for file in files):
            return ""
        with np.load(files[0]) as one, np.load(files[1]) as other:
            for name in one.files:
                if name not in other.files or not np.array_equal(one[name], other[name]):
                    return (
                        f"the two models differ before the first step, first in {name}: "
                        "the factory does not make the same model twice from one seed"
                    )
        return ""

    def _data_parts(self, count: int) -> str:
        for number in range(count):
            one, other = (self._steps_of(way)[number]["data"] for way in ("dygraph", "to_static"))
            if one != other:
                return (
                    f"step {number + 1} is given other data: "
                    "the factory's data is not the same twice from one seed"
                )
        return ""

    def _trouble(self) -> str:
        for way in ("dygraph", "to_static"):
            end = self._ends[way]
            problem = next((m for m in end.messages if "problem" in m), None)
            if problem:
                return f"{way} fails in step {problem['step'] + 1}: {problem['problem']}"
            if end.died:
                done = len(self._steps_of(way))
                return f"{way} {end.died} after {done} step(s)"
        return ""


def _sentence(step: TrainStep) -> str:
    first = step.parted[0] if step.parted else None
    if first is None:
        return f"in step {step.step} nothing could be judged"
    where = ""
    if first.worst is not None:
        where = (
            f"; at {list(first.worst.index)} dygraph has {first.worst.expected}, "
            f"to_static {first.worst.actual}"
        )
    name = first.name
    if name != "loss" and not name.startswith(GRADIENT):
        name = f"parameter {name}"
    part = f"dygraph and to_static part in step {step.step}, first in the {name}"
    return f"{part}: {first.reason}{where}"


def _agrees(steps: Sequence[TrainStep]) -> str:
    closest = max(step.closest for step in steps)
    share = min(step.share for step in steps)
    told = "1 step" if len(steps) == 1 else f"{len(steps)} steps"
    return (
        f"dygraph and to_static agree over {told}: losses, gradients and parameters; at most "
        f"{closest:.2g} of the tolerance is used, {share:.0%} of the elements were judged"
    )
