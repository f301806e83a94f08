"""Keeps tensors of the candidate on disk, because a piece of the baseline is to start from them.

A stream shows every tensor once, and only for a moment; what an op should have made of its inputs
can be computed only later. Disk, not memory, because all tensors together can be larger than that.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import numpy.typing as npt

    from tipcheck.backends.trace import TracedTensor

    Array = npt.NDArray[Any]

OBSERVER = f"{__name__}:Observer"
"""What the comparison loads in its worker."""

_SATURATED = {"int8": (-128, 127), "uint8": (0, 255)}


class Observer:
    """Sees each pair in the worker that compares: keeps the candidate's tensor, counts saturation.

    Args:
        order: with ``options``: ``spool``, a folder, or empty to keep nothing; ``both``, whether to
            keep the baseline's tensors too, for a check of the user's own.
    """

    def __init__(self, order: Mapping[str, Any]) -> None:
        options = order["options"]
        self._folder = Path(options["spool"]) if options.get("spool") else None
        self._both = bool(options.get("both"))
        self._saturated: dict[str, float] = {}

    def compared(
        self,
        candidate: TracedTensor,
        baseline: TracedTensor | None,
        candidate_values: Array,
        baseline_values: Array,
    ) -> None:
        """Look at one pair; the arrays are good until this returns."""
        del baseline
        key = candidate.value
        if self._folder is not None:
            if self._both:
                np.save(beside(self._folder, key), baseline_values)
            part = self._folder / f".{key}.npy"
            np.save(part, candidate_values)
            part.replace(spooled(self._folder, key))
        limits = _SATURATED.get(candidate.dtype)
        if limits and candidate_values.size:
            ends = (candidate_values == limits[0]) & (limits[0] < 0)
            ends |= candidate_values == limits[1]
            self._saturated[str(key)] = float(np.count_nonzero(ends)) / candidate_values.size

    def finish(self) -> dict[str, Any]:
        """Return what was seen, by the candidate's value."""
        return {"saturated": self._saturated}


def beside(folder: Path, key: int) -> Path:
    """Return the file that the baseline's partner of a tensor is kept in."""
    return folder / f"baseline_{key}.npy"


def spooled(folder: Path, key: int) -> Path:
    """Return the file that a tensor is kept in."""
    return folder / f"tensor_{key}.npy"


class Spool:
    """The tensors that are kept, by the id of their value in the candidate's graph."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: set[int] = set()

    def __contains__(self, key: object) -> bool:
        return key in self.kept

    def arrived(self, key: int) -> bool:
        """Note that a tensor has been compared; say whether it was kept."""
        if spooled(self.folder, key).exists():
            self.kept.add(key)
        return key in self.kept

    def path(self, key: int) -> Path:
        """Return the file of a tensor that is kept."""
        return spooled(self.folder, key)

    def get(self, key: int) -> Array:
        """Return a tensor without reading it into memory."""
        array: Array = np.load(self.path(key), mmap_mode="r")
        return array

    def partner(self, key: int) -> Array:
        """Return the baseline's partner of a tensor, and keep it no longer."""
        array: Array = np.load(beside(self.folder, key))
        beside(self.folder, key).unlink()
        return array

    def size(self) -> int:
        """Return how many bytes are kept."""
        return sum(self.path(key).stat().st_size for key in self.kept)

    def release(self, keys: Collection[int]) -> None:
        """Delete tensors that nothing will start from any more."""
        for key in keys:
            if key in self.kept:
                self.kept.discard(key)
                self.path(key).unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete everything, the folder too."""
        self.kept.clear()
        shutil.rmtree(self.folder, ignore_errors=True)
