"""Tells rounding that the network itself amplifies from a mismatch that an op has made.

Two right executions can be far apart where a network blows up small differences, as untrained ones
do. Which side is off there? Both are held against the baseline's program in float64: when the
baseline is as far from it as the candidate, the distance between them is nobody's fault.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.replay.replaying import Order, Replayer
from tipcheck.blame import budget
from tipcheck.blame.introduced import apart
from tipcheck.blame.lockstep import Choice, SideBySide
from tipcheck.blame.spool import OBSERVER, Spool
from tipcheck.compare.judge import Rules
from tipcheck.compare.verdict import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tipcheck.blame.alignment import Pairing
    from tipcheck.blame.table import OpRow

    Array = npt.NDArray[Any]

FAR = 1e-3
"""Worst element over rms from which on two float32 tensors need an explanation."""
_MOST = 200
"""Rows that are explained at most; float64 values of the tensors before them lie on disk."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The run that is looked at again.

    Attributes:
        side: the two executions.
        replayer: computes the baseline's program in float64.
        inputs: files of the model's inputs, by their values in the baseline's graph.
        sample: the file with the inputs.
        rules: the tolerance of the rows.
        memory: bytes that tensors on their way may take; 0 for the default.
    """

    side: SideBySide
    replayer: Replayer
    inputs: Mapping[int, Path]
    sample: Path
    rules: Rules
    memory: int = 0


def in_question(rows: Iterable[OpRow]) -> list[OpRow]:
    """Return the rows that are far from their baseline though no op is to blame, in op order."""
    found = [row for row in rows if _is_far(row) and row.baseline is not None]
    return sorted(found, key=lambda row: row.tensor.op_index)[:_MOST]


def _is_far(row: OpRow) -> bool:
    distance = row.propagated.max_abs_over_rms if row.propagated else None
    innocent = row.introduced is not None and row.introduced.status is Status.PASS
    single = row.baseline is not None and row.baseline.dtype == row.tensor.dtype == "float32"
    return distance is not None and distance > FAR and innocent and single


def explained(asked: Asked, rows: list[OpRow], folder: Path) -> dict[int, str]:
    """Return, for rows by the candidate's value, how far each side is from float64."""
    keys = [row.tensor.value for row in rows]
    pairings = {
        pairing.candidate: pairing
        for pairing in asked.side.alignment.pairings
        if pairing.candidate in keys
    }
    spool = Spool(folder / "both")
    spool.folder.mkdir()
    try:
        options = {"spool": str(spool.folder), "both": True}
        look = Choice(frozenset(keys), asked.memory, OBSERVER, options)
        asked.side.compare(asked.sample, asked.rules, look)
        exact = {value: str(file) for value, file in asked.inputs.items()}
        told = {}
        for key in keys:
            found = _one(asked, spool, pairings[key], exact)
            if found:
                told[key] = found
        return told
    finally:
        shutil.rmtree(spool.folder, ignore_errors=True)


def _one(asked: Asked, spool: Spool, pairing: Pairing, exact: dict[int, str]) -> str:
    """Say of one row how far both sides are from float64; keep that value for the rows after it."""
    key, target = pairing.candidate, pairing.baseline
    if key is None or target is None or not spool.arrived(key):
        return ""
    out = str(spool.folder / f"exact_{target}.npy")
    answer = asked.replayer.replay(Order(-1, target, exact, out))
    if answer.error:
        return ""
    made: Array = np.load(out, mmap_mode="r")
    mine, theirs = spool.get(key), spool.partner(key)
    for axes in (answer.axes, pairing.permutation):
        made = made.transpose(axes) if len(axes) == made.ndim else made
    if made.shape != mine.shape or theirs.shape != mine.shape:
        return ""
    if not answer.axes:  # in another order it could not be handed back as it is
        exact[target] = out
    ours, base = (apart(made, side, "float32").sqnr_db for side in (mine, theirs))
    if ours is None or base is None:
        return ""
    told = f"{ours:.1f} dB from float64, the baseline {base:.1f} dB"
    if ours >= base - budget.FAIL_DB:
        return f"the network amplifies rounding: {told}"
    return told


__all__ = ["FAR", "Asked", "explained", "in_question"]
