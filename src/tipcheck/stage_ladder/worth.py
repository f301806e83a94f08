"""What an input set is worth: whether answers to it can tell a right stage from a wrong one.

All zeros hide every weight, and an output that is the same everywhere hides every permutation. Such
sets are compared, since a difference is a difference; that they agree proves nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tipcheck.stage_ladder.answers import StageRun, opened
from tipcheck.stage_ladder.noise import STRANGER, NoiseFloor
from tipcheck.stage_ladder.rung import SetNote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def worth_of(
    names: Sequence[str],
    sets: Sequence[str],
    bottom: StageRun | None,
    dropped: Mapping[int, str],
    noise: NoiseFloor,
) -> tuple[SetNote, ...]:
    """Return a note per input set, from its inputs and the answers of the lowest stage."""
    notes = []
    for number, name in enumerate(names):
        if number in dropped:
            notes.append(SetNote(name, speaks=False, note=f"not accepted: {dropped[number]}"))
            continue
        if bottom is None or number not in bottom.archives:
            notes.append(SetNote(name, speaks=False, note="no stage gave an answer"))
            continue
        note = _silent(Path(sets[number]), bottom.archives[number])
        notes.append(SetNote(name, speaks=not note, note=note or _rounding(noise, number)))
    return tuple(notes)


def _rounding(noise: NoiseFloor, number: int) -> str:
    """Say which outputs are little else than rounding for these inputs."""
    found = [name for where, name in noise.turned if where == number]
    found += [
        name
        for (where, name), floor in noise.floors.items()
        if where == number and floor.rms > STRANGER and name not in found
    ]
    return f"rounding decides much of {', '.join(sorted(found))}" if found else ""


def same_everywhere(bottom: StageRun) -> list[str]:
    """Return the outputs that no input changes."""
    seen: dict[str, set[bytes]] = {}
    for archive in bottom.archives.values():
        with opened(archive) as outputs:
            for name in outputs:
                array = outputs[name]
                seen.setdefault(name, set()).add(repr(array.shape).encode() + array.tobytes())
    if len(bottom.archives) < 2:
        return []
    return [name for name, answers in seen.items() if len(answers) == 1]


def always_empty(bottom: StageRun) -> list[str]:
    """Return the outputs that have no elements for any input."""
    sizes: dict[str, int] = {}
    for archive in bottom.archives.values():
        with opened(archive) as outputs:
            for name in outputs:
                sizes[name] = max(sizes.get(name, 0), outputs[name].size)
    return [name for name, size in sizes.items() if not size]


def _silent(inputs: Path, outputs: Path) -> str:
    with opened(inputs) as given:
        if all(not given[name].any() for name in given):
            return "says nothing: all inputs are zero"
    speaking = empty = broken = 0
    with opened(outputs) as found:
        count = len(found)
        for name in found:
            array = found[name]
            if not array.size:
                empty += 1
            elif array.dtype.kind == "f" and np.isnan(array).any():
                broken += 1
            elif array.size == 1 or (array.reshape(-1)[0] != array).any():
                speaking += 1
    if speaking:
        return ""
    if broken:
        return "says nothing: the reference itself gives NaN"
    if empty == count:
        return "says nothing: the outputs have no elements"
    return "says nothing: the outputs are the same everywhere"
