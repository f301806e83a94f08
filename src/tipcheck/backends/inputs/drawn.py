"""Inputs for a model, made from nothing but its specs: pure numpy, and the same on every machine.

One kind of input hides one kind of fault. Zeros hide every weight, ones every permutation of an
axis, small numbers every overflow; a batch of one hides what goes wrong in the second row. So there
are several kinds, and several sizes for axes whose length the model leaves open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tipcheck.backends.subject import InputSet, InputSpec
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

Array = npt.NDArray[Any]
Feed = dict[str, Array]

BATCHES = (2, 1, 3)
"""Lengths tried for the first axis, the usual one first."""
SIDES = (64, 96, 160, 224)
"""Lengths tried for the open axes of pictures: multiples of 32, which most nets ask for."""
LENGTHS = (16, 24, 7)
"""Lengths tried for every other open axis, such as that of a sequence."""
_PICTURE_AXES = 4
_BELOW = {"uint8": 256, "int8": 128}
"""Bytes are pixels. Other integers of which nothing is known are 0 or 1: masks, kinds, flags."""


@dataclass(frozen=True, slots=True)
class Size:
    """Lengths for the axes that a model leaves open."""

    batch: int = BATCHES[0]
    side: int = SIDES[0]
    length: int = LENGTHS[0]

    def of(self, spec: InputSpec) -> tuple[int, ...]:
        """Return a shape without open axes."""
        picture = len(spec.shape) >= _PICTURE_AXES
        return tuple(
            extent if extent >= 0 else self._length(axis, picture=picture)
            for axis, extent in enumerate(spec.shape)
        )

    def _length(self, axis: int, *, picture: bool) -> int:
        if axis == 0:
            return self.batch
        return self.side if picture else self.length


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of numbers.

    Attributes:
        name: what people read.
        finds: what it is there for.
        make: from a random generator and a shape to float64 numbers.
    """

    name: str
    finds: str
    make: Callable[[np.random.Generator, tuple[int, ...]], Array]


def _ties(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return random.integers(-1, 2, shape).astype(np.float64)


KINDS: tuple[Kind, ...] = (
    Kind("normal", "weights, axes, layouts", lambda random, shape: random.standard_normal(shape)),
    Kind(
        "uniform", "what pictures scaled to 0..1 find", lambda random, shape: random.random(shape)
    ),
    Kind("zeros", "what bias and padding alone give", lambda _, shape: np.zeros(shape)),
    Kind("ones", "sums and padding", lambda _, shape: np.ones(shape)),
    Kind("large", "overflow", lambda random, shape: 1e3 * random.standard_normal(shape)),
    Kind("tiny", "what vanishes", lambda random, shape: 1e-6 * random.standard_normal(shape)),
    Kind("ties", "the order of equal scores", _ties),
    Kind("negative", "what is cut off below zero", lambda random, shape: -random.random(shape)),
)
_BY_NAME = {kind.name: kind for kind in KINDS}


def make_feed(specs: Sequence[InputSpec], kind: str, size: Size, seed: int = 0) -> Feed:
    """Return one set of inputs; the same for the same arguments.

    Args:
        specs: the model's inputs.
        kind: name of one of ``KINDS``.
        size: lengths of the open axes.
        seed: where the random numbers start.
    """
    chosen = _BY_NAME[kind]
    return {spec.name: _make(spec, chosen, size.of(spec), seed) for spec in specs}


def sizes_for(specs: Sequence[InputSpec]) -> tuple[Size, ...]:
    """Return the sizes worth trying: each open axis changes at least once."""
    batch = any(spec.shape and spec.shape[0] < 0 for spec in specs)
    side = any(-1 in spec.shape[1:] and len(spec.shape) >= _PICTURE_AXES for spec in specs)
    length = any(-1 in spec.shape[1:] and len(spec.shape) < _PICTURE_AXES for spec in specs)
    sizes = [Size()]
    if batch:
        sizes += [Size(batch=other) for other in BATCHES[1:]]
    if side:
        sizes += [Size(side=other) for other in SIDES[1:2]]
    if length:
        sizes += [Size(length=other) for other in LENGTHS[1:2]]
    return tuple(sizes)


def size_name(size: Size, specs: Sequence[InputSpec]) -> str:
    """Return what is special about a size, such as ``batch 3``; empty for the usual one."""
    usual, told = Size(), []
    open_axes = any(-1 in spec.shape for spec in specs)
    if open_axes and size.batch != usual.batch:
        told.append(f"batch {size.batch}")
    if open_axes and size.side != usual.side:
        told.append(f"side {size.side}")
    if open_axes and size.length != usual.length:
        told.append(f"length {size.length}")
    return ", ".join(told)


def check_kinds(names: Sequence[str]) -> None:
    """Refuse what is no kind of inputs.

    Raises:
        UsageError: a name is no kind.
    """
    unknown = [name for name in names if name not in _BY_NAME]
    if unknown:
        raise UsageError(
            f"there is no kind of inputs {unknown[0]!r}",
            hint=f"the kinds are {', '.join(_BY_NAME)}",
        )


def make_sets(
    specs: Sequence[InputSpec],
    folder: Path,
    *,
    seed: int = 0,
    kinds: Sequence[str] = (),
    one_size: bool = False,
) -> tuple[InputSet, ...]:
    """Write input sets into a folder: every kind at the usual size, ``normal`` at the others.

    Args:
        specs: the model's inputs.
        folder: where the ``.npz`` files go; they are named relative to it.
        seed: where the random numbers start.
        kinds: names of ``KINDS``; all of them when empty. The first is used for the other sizes.
        one_size: whether to leave the other sizes out.
    """
    chosen = list(kinds) or [kind.name for kind in KINDS]
    check_kinds(chosen)
    usual, *others = sizes_for(specs)[: 1 if one_size else None]
    plans = [(kind, usual) for kind in chosen] + [(chosen[0], size) for size in others]
    sets = []
    for number, (kind, size) in enumerate(plans):
        name = ", ".join(filter(None, (kind, size_name(size, specs))))
        feed = make_feed(specs, kind, size, seed)
        sets.append(write_set(feed, folder, number, name))
    return tuple(sets)


def write_set(
    feed: Mapping[str, Array], folder: Path, number: int, name: str, origin: str = "made"
) -> InputSet:
    """Write one set of inputs and return its entry."""
    archive = f"inputs_{number}.npz"
    # numpy takes a keyword called ``file`` for the path; every other name goes.
    if "file" in feed:
        raise UsageError("an input is called 'file', which .npz files cannot hold")
    np.savez(folder / archive, **feed)  # type: ignore[arg-type]
    return InputSet(name, archive, origin)


def _make(spec: InputSpec, kind: Kind, shape: tuple[int, ...], seed: int) -> Array:
    random = np.random.default_rng([seed, *hashlib.sha256(spec.name.encode()).digest()[:8]])
    numbers = kind.make(random, shape)
    if spec.dtype == "bool":
        return np.asarray(numbers > 0)
    if spec.dtype == "bfloat16":
        return np.asarray((numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
    dtype = np.dtype(spec.dtype)
    if dtype.kind in "iu":
        below = _BELOW.get(spec.dtype, 2) if spec.below is None else spec.below
        return _integers(random, kind.name, shape, max(1, below)).astype(dtype)
    if dtype == np.float16:
        numbers = np.clip(numbers, -6e4, 6e4)
    return np.asarray(numbers.astype(dtype))


def _integers(random: np.random.Generator, kind: str, shape: tuple[int, ...], top: int) -> Array:
    """Return integers that a model accepts: never negative, never beyond what it can look up."""
    if kind in ("zeros", "tiny", "negative"):
        return np.zeros(shape, np.int64)
    if kind == "ones":
        return np.full(shape, min(1, top - 1))
    if kind == "large":
        return np.full(shape, top - 1)
    if kind == "ties":
        return random.integers(0, min(2, top), shape)
    return random.integers(0, top, shape)
