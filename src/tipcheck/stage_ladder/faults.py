"""Faults to put between two stages: what each does to the answers, at a size that is asked for.

A fault with a size is a direction: what the broken model adds to every output. It is scaled until
its largest effect, over all outputs and input sets, is so many noise floors. Faults of the
structure have no size: an output is there or it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tipcheck.stage_ladder.answers import Array

if TYPE_CHECKING:
    from tipcheck.stage_ladder.noise import NoiseFloor

Answers = dict[int, dict[str, Array]]
"""Outputs by name, by index of the input set."""

Random = np.random.Generator
Change = Callable[[Array, Random], Array]

_FEATURES = "output_2"
"""The output of the self-test's model with the axes of a picture."""


def _picture(change: Callable[[Array], Array]) -> Change:
    def only_pictures(array: Array, _: Random) -> Array:
        return change(array) - array if array.ndim == 4 else np.zeros_like(array)

    return only_pictures


def _stale(array: Array, _: Random) -> Array:
    return np.concatenate([array[:1]] * len(array)) - array


def _one_element(array: Array, random: Random) -> Array:
    added = np.zeros_like(array)
    added.reshape(-1)[int(random.integers(array.size))] = 1.0
    return added


def _one_channel(array: Array, random: Random) -> Array:
    added = np.zeros_like(array)
    channel = int(random.integers(array.shape[1]))
    added[:, channel] = -2 * array[:, channel]
    return added


def _cut(array: Array, _: Random) -> Array:
    low, high = np.quantile(array, [0.02, 0.98])
    cut: Array = np.clip(array, low, high) - array
    return cut


DIRECTIONS: dict[str, Change] = {
    "axes swapped": _picture(lambda array: array.transpose(0, 1, 3, 2)),
    "layout transposed": _picture(lambda a: a.transpose(0, 2, 3, 1).reshape(a.shape)),
    "batch rows stale": _stale,
    "batch rows permuted": lambda array, _: array[::-1] - array,
    "one element wrong": _one_element,
    "sign of one channel": _one_channel,
    "scaled": lambda array, _: 1.0 * array,
    "shifted": lambda array, _: np.ones_like(array),
    "saturated": _cut,
    "noise of a coarser kernel": lambda array, random: random.standard_normal(array.shape),
}
"""What a fault adds to one output."""


def _renamed(answers: Answers, random: Random) -> None:
    name = f"output_{int(random.integers(3))}"
    for outputs in answers.values():
        outputs["renamed"] = outputs.pop(name)


def _missing(answers: Answers, random: Random) -> None:
    name = f"output_{int(random.integers(3))}"
    for outputs in answers.values():
        del outputs[name]


def _put(value: float) -> Callable[[Answers, Random], None]:
    def put(answers: Answers, random: Random) -> None:
        outputs = answers[min(answers)]
        name = f"output_{int(random.integers(3))}"
        array = outputs[name].copy()
        array.reshape(-1)[int(random.integers(array.size))] = value
        outputs[name] = array

    return put


def _other_shape(answers: Answers, _: Random) -> None:
    for outputs in answers.values():
        outputs[_FEATURES] = outputs[_FEATURES][..., None]


def _other_dtype(answers: Answers, _: Random) -> None:
    for outputs in answers.values():
        outputs[_FEATURES] = outputs[_FEATURES].astype(np.float64)


def _fewer_rows(answers: Answers, _: Random) -> None:
    for outputs in answers.values():
        for name in outputs:
            outputs[name] = outputs[name][:-1]


def _fewer_sets(answers: Answers, _: Random) -> None:
    del answers[max(answers)]


def _swapped_outputs(answers: Answers, _: Random) -> None:
    for outputs in answers.values():
        outputs["output_0"], outputs["output_1"] = outputs["output_1"], outputs["output_0"]


STRUCTURAL: dict[str, Callable[[Answers, Random], None]] = {
    "output renamed": _renamed,
    "output missing": _missing,
    "outputs in another order": _swapped_outputs,
    "NaN in one element": _put(np.nan),
    "infinity in one element": _put(np.inf),
    "another shape": _other_shape,
    "another dtype": _other_dtype,
    "fewer rows": _fewer_rows,
    "fewer input sets answered": _fewer_sets,
}
"""Faults without a size."""


@dataclass(frozen=True, slots=True)
class Direction:
    """What a fault adds, by input set and output, in float64."""

    added: Mapping[int, Mapping[str, Array]]

    def scaled(self, answers: Answers, noise: NoiseFloor, size: float) -> Answers | None:
        """Return answers with the fault at a size in noise floors; None where it does nothing."""
        largest = 0.0
        for number, outputs in answers.items():
            for name, array in outputs.items():
                floor = noise.of(number, name)
                rms = float(np.sqrt(np.mean(np.square(array.astype(np.float64)))))
                if floor is None or rms == 0.0:
                    continue
                off = float(np.sqrt(np.mean(np.square(self.added[number][name]))))
                largest = max(largest, off / rms / floor.rms)
        if largest == 0.0:
            return None
        return self.times(answers, size / largest)

    def times(self, answers: Answers, factor: float) -> Answers:
        """Return answers with so many times the fault."""
        return {
            number: {
                name: (array.astype(np.float64) + factor * self.added[number][name]).astype(
                    array.dtype
                )
                for name, array in outputs.items()
            }
            for number, outputs in answers.items()
        }


def direction_of(change: Change, answers: Answers, random: Random) -> Direction:
    """Return what a change of outputs adds to answers."""
    return Direction(
        {
            number: {
                name: change(array.astype(np.float64), random) for name, array in outputs.items()
            }
            for number, outputs in answers.items()
        }
    )
