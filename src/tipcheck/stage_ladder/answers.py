"""What the stages gave, before anybody has judged it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class StageRun:
    """One stage, run on all input sets.

    Attributes:
        stage: its name.
        archives: by index of the input set, the file with its answers.
        problems: by index of the input set, why there is no answer.
        unsupported: why it cannot run here; empty when it can.
        get: what to do about that.
        crash: how its process died, or why it could not even load; empty when it did not.
        spread: largest difference between two runs in one process, over rms.
        spread_fresh: the same between two processes.
        checks: answers of the state-and-shape suite, as the worker gave them.
        seconds: what it took.
        last_lines: the end of what it printed.
        printed: bytes that it printed.
        notes: what it noticed itself.
    """

    stage: str
    archives: dict[int, Path] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    unsupported: str = ""
    get: str = ""
    crash: str = ""
    spread: float | None = None
    spread_fresh: float | None = None
    checks: tuple[dict[str, Any], ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    last_lines: tuple[str, ...] = ()
    printed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether it gave any answer."""
        return bool(self.archives)


@contextmanager
def opened(archive: Path) -> Iterator[dict[str, Array]]:
    """Give the arrays of one answer; each is read when it is asked for."""
    with np.load(archive, allow_pickle=False) as arrays:
        yield _Lazy(arrays)


class _Lazy(dict[str, Array]):
    """Arrays by name, none held longer than its user holds it."""

    def __init__(self, arrays: Any) -> None:  # noqa: ANN401 - numpy's NpzFile
        super().__init__(dict.fromkeys(arrays.files))
        self._arrays = arrays

    def __getitem__(self, name: str) -> Array:
        found: Array = self._arrays[name]
        return found


def numbers(array: Array, *, bfloat16: bool = False) -> npt.NDArray[np.float64]:
    """Return floating elements as float64; bfloat16 comes as the bits of uint16."""
    if bfloat16 and array.dtype.itemsize == 2 and array.dtype.kind in "uV":
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)
