"""Judges whether two sets of outputs are the same, and says how far apart they are.

Comes in: two sets of named tensors, in memory or in ``.npz`` files, and the rules to judge by.
Goes out: a ``Comparison``: one ``TensorVerdict`` per output, each with its evidence.
May import: numpy only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tipcheck.compare.archive import open_archive
from tipcheck.compare.judge import Rules, judge_outputs
from tipcheck.compare.tensors import MemoryTensor
from tipcheck.compare.verdict import Comparison, Gate, Status, TensorVerdict, Threshold

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

__all__ = [
    "Comparison",
    "Gate",
    "Rules",
    "Status",
    "TensorVerdict",
    "Threshold",
    "compare_arrays",
    "compare_files",
]


def compare_arrays(
    expected: Mapping[str, npt.ArrayLike],
    actual: Mapping[str, npt.ArrayLike],
    rules: Rules | None = None,
) -> Comparison:
    """Compare two sets of named arrays."""
    one, other = (
        {name: MemoryTensor(np.asarray(array)) for name, array in side.items()}
        for side in (expected, actual)
    )
    return judge_outputs(one, other, rules or Rules())


def compare_files(expected: Path, actual: Path, rules: Rules | None = None) -> Comparison:
    """Compare two ``.npz`` files without ever holding one of their arrays in memory.

    Raises:
        UsageError: a file cannot be read as arrays; the message says which and what to do.
    """
    with open_archive(expected) as one, open_archive(actual) as other:
        return judge_outputs(
            one,
            other,
            rules or Rules(),
            expected_name=str(expected),
            actual_name=str(actual),
        )
