"""Compares two trainings step by step: the first step and the first parameter that part.

Losses, gradients and parameters are judged in the order in which one follows from the other, so
that the first that differs is where the two ways part. What is small against everything of its kind
(a bias in front of a normalisation has a gradient of nothing but rounding) says nothing, and an
optimizer like Adam makes a full step of it; so an element whose gradient has been below the floor
is left out of the parameters too where it differs, and the share that was judged is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tipcheck.compare.verdict import Element, Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GRADIENT = "gradient of "
_SMALL = 1e-3
"""A gradient this much smaller than the rms of all gradients of its step is below the floor."""


@dataclass(frozen=True, slots=True)
class Parted:
    """One tensor in which the two ways differ.

    Attributes:
        name: ``loss``, ``gradient of NAME``, or the name of a parameter or buffer.
        reason: how, in one sentence.
        worst: the element that is furthest off; None where shapes or names differ.
        times: how many times its tolerance it is off.
    """

    name: str
    reason: str
    worst: Element | None = None
    times: float | None = None


@dataclass(frozen=True, slots=True)
class TrainStep:
    """One step of both ways.

    Attributes:
        step: its number, from 1.
        status: the verdict.
        loss: of dygraph and of to_static.
        parted: tensors that differ, the one that the others follow from first.
        compared: tensors that were compared.
        elements: elements that were judged.
        share: of all elements, those that were judged.
        closest: largest share of its tolerance that an element uses.
    """

    step: int
    status: Status
    loss: tuple[float, float]
    parted: tuple[Parted, ...] = ()
    compared: int = 0
    elements: int = 0
    share: float = 1.0
    closest: float = 0.0


@dataclass(frozen=True, slots=True)
class TrainResult:
    """The verdict on a training.

    Attributes:
        source: the factory.
        status: the verdict on all of it.
        sentence: what is wrong, or that nothing is, in words.
        steps: step by step.
        seed: where all random numbers began.
        rtol: tolerance, as a share of an element and of the rms of its tensor.
        repeats: whether dygraph gave the same twice; None where that was not seen.
        facts: what else is known.
    """

    schema: ClassVar[str] = "tipcheck.train/1"

    source: str
    status: Status
    sentence: str
    steps: tuple[TrainStep, ...] = ()
    seed: int = 0
    rtol: float = 1e-4
    repeats: bool | None = None
    facts: Mapping[str, str] = field(default_factory=dict)


class StepJudge:
    """Judges the steps of one training in their order."""

    def __init__(self, parameters: Sequence[str], rtol: float) -> None:
        """Say what the parameters are, in the order of the model, and how much they may differ."""
        self._order = list(parameters)
        self._rtol = rtol
        self._blind: dict[str, Any] = {}

    def judge(self, number: int, one: Path, other: Path) -> TrainStep:
        """Compare what two ways gave after a step."""
        with np.load(one) as mine, np.load(other) as theirs:
            return self._judge(number, dict(mine), dict(theirs))

    def _judge(self, number: int, mine: dict[str, Any], theirs: dict[str, Any]) -> TrainStep:
        self._look_at_gradients(mine, theirs)
        parted: list[Parted] = []
        judged = total = compared = 0
        closest = 0.0
        for name in self._in_order([*mine, *(name for name in theirs if name not in mine)]):
            problem = _structure(name, mine, theirs)
            if problem is not None:
                parted.append(problem)
                continue
            used = self._used(name, mine[name], theirs[name])
            compared += 1
            total += mine[name].size
            judged += int(np.isfinite(used).sum() + np.isposinf(used).sum())
            found = _worst(name, used, mine[name], theirs[name])
            closest = max(closest, found[0])
            if found[1] is not None:
                parted.append(found[1])
        loss = (_scalar(mine), _scalar(theirs))
        status = Status.FAIL if parted or not judged else Status.PASS
        share = judged / total if total else 0.0
        return TrainStep(number, status, loss, tuple(parted), compared, judged, share, closest)

    def _in_order(self, names: Sequence[str]) -> list[str]:
        """Return the loss, the gradients from the last layer to the first, then the parameters."""
        place = {name: index for index, name in enumerate(self._order)}

        def key(name: str) -> tuple[int, int]:
            if name == "loss":
                return (0, 0)
            if name.startswith(GRADIENT):
                return (1, -place.get(name[len(GRADIENT) :], 0))
            return (2, place.get(name, len(place)))

        return sorted(names, key=key)

    def _look_at_gradients(self, mine: dict[str, Any], theirs: dict[str, Any]) -> None:
        """Remember which elements have had gradients that say nothing."""
        gradients = [name for name in mine if name.startswith(GRADIENT)]
        squares = [float(np.mean(np.square(mine[name], dtype=np.float64))) for name in gradients]
        self._floor = _SMALL * float(np.sqrt(np.mean(squares))) if squares else 0.0
        for name in gradients:
            if name in theirs and theirs[name].shape == mine[name].shape:
                small = np.maximum(np.abs(mine[name]), np.abs(theirs[name])) <= self._floor
                parameter = name[len(GRADIENT) :]
                self._blind[parameter] = self._blind.get(parameter, False) | small

    def _used(self, name: str, mine: Any, theirs: Any) -> Any:  # noqa: ANN401 - arrays
        """Return, for every element, the share of its tolerance that it uses; -inf for no say."""
        if mine.dtype.kind not in "fc":
            return np.where(mine == theirs, 0.0, np.inf)
        one, other = mine.astype(np.float64), theirs.astype(np.float64)
        with np.errstate(all="ignore"):
            same = (one == other) | (np.isnan(one) & np.isnan(other))
            rms = float(np.sqrt(np.mean(np.square(one)))) if one.size else 0.0
            floor = self._floor if name.startswith(GRADIENT) else 0.0
            allowed = self._rtol * (np.abs(one) + max(rms, floor))
            used = np.where(same, 0.0, np.abs(other - one) / allowed)
        used = np.where(np.isnan(used), np.inf, used)
        blind = self._blind.get(name)
        return used if blind is None else np.where(blind & ~same, -np.inf, used)


def _structure(name: str, mine: dict[str, Any], theirs: dict[str, Any]) -> Parted | None:
    if name not in mine or name not in theirs:
        way = "dygraph" if name not in mine else "to_static"
        return Parted(name, f"{way} has none")
    if mine[name].shape != theirs[name].shape:
        was, now = list(mine[name].shape), list(theirs[name].shape)
        return Parted(name, f"shape {was} became {now}")
    return None


def _worst(name: str, used: Any, mine: Any, theirs: Any) -> tuple[float, Parted | None]:  # noqa: ANN401
    if not used.size or np.max(used) == -np.inf:
        return 0.0, None
    at = np.unravel_index(np.argmax(used), used.shape)
    times = float(used[at])
    if times <= 1.0:
        return times, None
    index = tuple(int(number) for number in at)
    element = Element(index, _plain(mine[at]), _plain(theirs[at]))
    wrong = int((used > 1.0).sum())
    reason = f"{wrong:,} of {used.size:,} elements differ"
    return times, Parted(name, reason, element, times)


def _plain(value: Any) -> int | float | str:  # noqa: ANN401 - a numpy scalar
    number = value.item()
    return number if isinstance(number, int) or np.isfinite(number) else str(number)


def _scalar(step: dict[str, Any]) -> float:
    return float(np.asarray(step["loss"]).reshape(-1)[0]) if "loss" in step else float("nan")
