"""Records what only the user's own process can run: the layer itself, eager and as one program.

Used where a layer is at hand and cannot be sent to a worker: from the library, and where an export
was caught inside somebody's script. What the forward does to the process is undone where it can be
and said where it cannot; a segfault here is a segfault of the user's own process.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.layers.calls import LayerCall
from tipcheck.backends.server.jobs import load_feed, save_outputs
from tipcheck.backends.subject import InputSpec, Recorded
from tipcheck.backends.told import told

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tipcheck.backends.subject import InputSet

STAGES = ("eager", "to_static")


def record_layer(
    layer: Any,  # noqa: ANN401 - Paddle has no types
    specs: Sequence[Any],
    inputs: Sequence[InputSpec],
    sets: Sequence[InputSet],
    folder: Path,
    *,
    stages: Sequence[str] = STAGES,
) -> tuple[tuple[Recorded, ...], tuple[str, ...]]:
    """Run a layer on every input set, twice on the first.

    Args:
        layer: a ``paddle.nn.Layer``; it is run in evaluation mode and afterwards as it was.
        specs: its arguments, as nested InputSpecs.
        inputs: the same, flat, by the names that the export gives them.
        sets: the input sets.
        folder: where they are, and where the answers go.
        stages: ``eager`` and ``to_static``, or one of them.

    Returns:
        What was recorded, and what was noticed on the way.
    """
    names = [item.name for item in inputs]
    found, notes = [], []
    for stage in stages:
        recorded, noticed = _record(stage, layer, specs, names, sets, folder)
        found.append(recorded)
        notes += [note for note in noticed if note not in notes]
    return tuple(found), tuple(notes)


def _record(
    stage: str,
    layer: Any,  # noqa: ANN401
    specs: Sequence[Any],
    names: Sequence[str],
    sets: Sequence[InputSet],
    folder: Path,
) -> tuple[Recorded, list[str]]:
    archives, again, problem = [""] * len(sets), [""] * len(sets), ""
    start = time.perf_counter()
    try:
        call = LayerCall(layer, list(specs), names, static=stage == "to_static")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is the answer
        return Recorded(stage, tuple(archives), problem=told(error)), []
    for number, item in enumerate(sets):
        feed = load_feed(str(folder / item.archive))
        for archive, suffix in ((archives, ""), (again, "_again")):
            if suffix and number != _first(archives):
                continue
            name = f"{stage}_{number}{suffix}.npz"
            try:
                save_outputs(call.run(feed), folder / name)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the answer
                problem = problem or told(error)
                break
            archive[number] = name
    seconds = time.perf_counter() - start
    recorded = Recorded(stage, tuple(archives), tuple(again), tuple(call.paths), seconds, problem)
    return recorded, call.notes


def _first(archives: Sequence[str]) -> int:
    return next((number for number, name in enumerate(archives) if name), -1)


def flat_inputs(specs: Sequence[Any]) -> list[InputSpec]:
    """Return nested InputSpecs of Paddle as flat ones of ours."""
    from tipcheck.backends.layers.calls import flat_specs

    return [
        InputSpec(
            str(item.name or f"x{index}"),
            tuple(-1 if extent is None else int(extent) for extent in item.shape),
            str(np.dtype(str(item.dtype).rpartition(".")[2].lower()).name)
            if "bfloat16" not in str(item.dtype).lower()
            else "bfloat16",
        )
        for index, item in enumerate(flat_specs(specs))
    ]
