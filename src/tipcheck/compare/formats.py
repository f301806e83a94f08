"""What the elements of a tensor mean: their name, and how to turn stored bits into numbers.

bfloat16 has no dtype in numpy. Paddle hands it out as uint16, and ``numpy.save`` writes the one of
ml_dtypes as two raw bytes; both become numbers only when the caller says that they are bfloat16.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from tipcheck.compare.tensors import Array

EXACT_KINDS = frozenset("biuUSMm")
"""dtype kinds whose elements have to be equal: bool, integers, text, dates."""

BFLOAT16 = "bfloat16"
ALL_OUTPUTS = "*"
"""Stands for every output that can be bfloat16."""


@dataclass(frozen=True, slots=True)
class Format:
    """The element type of one tensor.

    Attributes:
        name: as people write it, ``bfloat16`` included; without byte order.
        kind: numpy's letter for the kind of number, ``f`` for bfloat16.
        stored: the dtype of the stored elements.
    """

    name: str
    kind: str
    stored: np.dtype[Any]

    @classmethod
    def of(cls, output: str, dtype: np.dtype[Any], bfloat16: frozenset[str]) -> Format:
        """Return the format of an output, given the names of those that hold bfloat16.

        Raises:
            UsageError: the elements cannot be compared, or are not what the caller said.
        """
        could_be = dtype.kind in "uV" and dtype.itemsize == 2
        if could_be and not bfloat16.isdisjoint((output, ALL_OUTPUTS)):
            return cls(BFLOAT16, "f", dtype)
        if output in bfloat16:
            raise UsageError(
                f"is {dtype.name}, which cannot hold bfloat16",
                where=f"output {output!r}",
                hint="name only outputs stored as uint16",
            )
        if dtype.kind in "OV":
            hint = f"if it is bfloat16, say --bf16 {output}" if could_be else ""
            raise UsageError(
                f"has elements of type {dtype.name}, which cannot be compared",
                where=f"output {output!r}",
                hint=hint or "save it as a numeric array",
            )
        return cls(dtype.name, dtype.kind, dtype)

    def same_as(self, other: Format) -> bool:
        """Whether two sides hold the same type; byte order and the width of text do not count."""
        if self.kind in "US" and self.kind == other.kind:
            return True
        return self.name == other.name

    def decode(self, block: Array) -> Array:
        """Return stored elements as float32, float64, longdouble or complex numbers."""
        if self.name == BFLOAT16:
            bits = block.view(np.uint16) if block.dtype.kind == "V" else block
            widened: Array = (bits.astype(np.uint32) << 16).view(np.float32)
            return widened
        if block.dtype == np.float16:
            return block.astype(np.float32)
        if not block.dtype.isnative:
            return block.astype(block.dtype.newbyteorder("="))
        return block
