"""Where the elements of a tensor come from: an array in memory, or a file read piece by piece.

The comparator never asks for a whole tensor. It walks two of them in step, a block at a time, so
that its memory stays the same whatever their size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[Any]

Order = Literal["C", "F"]

BLOCK = 131_072
"""Elements looked at together: few enough for the cache, many enough to pay for the calls."""


class Tensor(Protocol):
    """A named array whose elements can be walked once, from the first to the last."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type as stored."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of every axis."""

    @property
    def order(self) -> Order:
        """``C`` when the last axis varies fastest in ``blocks``, ``F`` when the first does."""

    def blocks(self, size: int) -> Iterator[Array]:
        """Yield all elements as flat arrays of ``size`` elements, the last one shorter."""

    def whole(self) -> Array:
        """Return all elements as one array of the tensor's shape."""


class MemoryTensor:
    """A tensor that is a numpy array already.

    Args:
        array: the array.
        order: the order to walk it in; by default the one it is stored in.
    """

    def __init__(self, array: Array, order: Order | None = None) -> None:
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        self._array = array
        self.order: Order = order or ("F" if fortran else "C")

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of every axis."""
        return self._array.shape

    def flat(self) -> Array | None:
        """Return a flat view in ``order``, or None where that would take a copy."""
        array = self._array.T if self.order == "F" else self._array
        return array.reshape(-1) if array.flags.c_contiguous else None

    def blocks(self, size: int) -> Iterator[Array]:
        """Yield flat pieces: views where memory is contiguous, small copies where it is not."""
        walk = self.flat()
        if walk is None:
            walk = self._array.T.flat if self.order == "F" else self._array.flat  # type: ignore[assignment]
        for start in range(0, self._array.size, size):
            yield walk[start : start + size]  # type: ignore[index]

    def whole(self) -> Array:
        """Return the array itself."""
        return self._array


def in_step(
    expected: Tensor, actual: Tensor, size: int = BLOCK
) -> Iterator[tuple[int, Array, Array]]:
    """Walk two tensors of one shape together: (index of the first element, expected, actual).

    Where they are stored in different orders, the actual one is held in memory and walked in the
    order of the expected one.
    """
    if expected.order != actual.order:
        actual = MemoryTensor(actual.whole(), order=expected.order)
    start = 0
    for one, other in zip(expected.blocks(size), actual.blocks(size), strict=True):
        yield start, one, other
        start += one.size
