"""What the children of the stage server do: run a stage, export a layer, make inputs.

Every job answers with lines of JSON in a file of its own, written through at once: what it said
before it died is the evidence. Arrays go into ``.npz`` files, never through a pipe.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.outputs import distance
from tipcheck.backends.stages import Place, UnusedError, stage_kinds
from tipcheck.backends.subject import output_name
from tipcheck.backends.told import told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tipcheck.backends.stages import Runner

    Answer = Callable[[Mapping[str, Any]], None]
    Feed = dict[str, Any]


def run_job(job: dict[str, Any]) -> int:
    """Do one job; return the exit code of the process."""
    with Path(job["answers"]).open("a", encoding="utf-8") as file:

        def answer(message: Mapping[str, Any]) -> None:
            file.write(json.dumps(dict(message)) + "\n")
            file.flush()

        _JOBS[job["do"]](job, answer)
        answer({"done": True})
    return 0


def place_of(job: Mapping[str, Any]) -> Place:
    """Return what a stage starts from."""
    return Place(
        model=Path(job["model"]) if job.get("model") else None,
        source=job.get("source", ""),
        path=tuple(job.get("path", ())),
        inputs=tuple(job.get("inputs", ())),
        folder=_own_folder(job),
        threads=int(job.get("threads", 1)),
        extra=job,
    )


def load_feed(archive: str) -> Feed:
    """Read one set of inputs."""
    with np.load(archive, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def save_outputs(outputs: Sequence[Any], path: Path) -> None:
    """Write the outputs of one run, by place."""
    named = {output_name(index): np.asarray(array) for index, array in enumerate(outputs)}
    np.savez(path, **named)  # type: ignore[arg-type]


def _own_folder(job: Mapping[str, Any]) -> Path:
    folder = Path(job["folder"]) / f"job_{job['id']}"
    folder.mkdir(exist_ok=True)
    return folder


def _run_stage(job: dict[str, Any], answer: Answer) -> None:
    """Load, run every set, run the first again, then ask about state and shape."""
    kind = stage_kinds()[job["stage"]]
    place = place_of(job)
    answer({"at": "loading"})
    start = time.perf_counter()
    try:
        runner = kind.start(place)
    except UnusedError as error:
        answer({"unused": str(error)})
        return
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is the answer
        answer({"problem": told(error)})
        return
    answer({"loaded": time.perf_counter() - start})
    first = _run_sets(job, runner, place.folder, answer)
    if first is not None and job.get("again"):
        answer({"at": "running the first inputs again"})
        feed = load_feed(job["sets"][first])
        one = load_feed(str(place.folder / f"set_{first}.npz"))
        answer({"spread": distance(list(one.values()), runner.run(feed))})
    notes = getattr(runner, "notes", ())
    if notes:
        answer({"notes": list(notes)})
    if job.get("state") and first is not None:
        from tipcheck.backends.server.state_suite import ask_about_state

        answer({"at": "state and shape"})
        start = time.perf_counter()
        ask_about_state(kind, runner, place, job["state"], answer)
        answer({"state_seconds": time.perf_counter() - start})


def _run_sets(job: dict[str, Any], runner: Runner, folder: Path, answer: Answer) -> int | None:
    """Run every input set; return the index of the first that gave answers."""
    first = None
    for index, archive in enumerate(job["sets"]):
        if not archive:
            continue
        answer({"at": f"running {job['names'][index]}"})
        feed = load_feed(archive)
        start = time.perf_counter()
        try:
            outputs = runner.run(feed)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the answer
            answer({"set": index, "problem": told(error)})
            continue
        seconds = time.perf_counter() - start
        target = folder / f"set_{index}.npz"
        save_outputs(outputs, target)
        answer({"set": index, "archive": str(target), "seconds": seconds})
        first = index if first is None else first
    return first


def _run_referee(job: dict[str, Any], answer: Answer) -> None:
    """Run the export in float64."""
    from tipcheck.backends.exports.widened import widen
    from tipcheck.backends.stages.executor import ProgramRunner

    place = place_of(job)
    try:
        runner = _Widened(ProgramRunner(widen(place.exported(), place.folder)))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        answer({"problem": told(error)})
        return
    _run_sets(job, runner, place.folder, answer)


def _run_shaken(job: dict[str, Any], answer: Answer) -> None:
    """Run the export on inputs with as much noise as a lower precision puts on every number."""
    from tipcheck.backends.stages.executor import ProgramRunner

    place = place_of(job)
    runner = _Shaken(ProgramRunner(place.exported()), float(job["size"]))
    _run_sets(job, runner, place.folder, answer)


class _Shaken:
    """Puts relative noise on floating inputs, another at every run."""

    def __init__(self, runner: Runner, size: float) -> None:
        self._runner = runner
        self._size = size
        self._draw = np.random.default_rng(0)

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        shaken = dict(feed)
        for name, array in feed.items():
            if array.dtype.kind == "f":
                noise = self._draw.uniform(-self._size, self._size, array.shape)
                shaken[name] = (array * (1 + noise)).astype(array.dtype)
        return self._runner.run(shaken)

    def clone(self) -> Runner:
        raise NotImplementedError


class _Widened:
    """Takes float32 inputs and runs them in float64."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        return self._runner.run(
            {
                name: array.astype(np.float64) if array.dtype == np.float32 else array
                for name, array in feed.items()
            }
        )

    def clone(self) -> Runner:
        raise NotImplementedError


def _export(job: dict[str, Any], answer: Answer) -> None:
    from tipcheck.backends.layers.source import export_source

    export_source(job, answer)


def _make_inputs(job: dict[str, Any], answer: Answer) -> None:
    from tipcheck.backends.inputs.given import make_given

    make_given(job, answer)


def _companion(job: dict[str, Any], answer: Answer) -> None:
    from tipcheck.backends.server.state_suite import make_companion

    answer({"model": str(make_companion(Path(job["folder"])))})


def _selftest(job: dict[str, Any], answer: Answer) -> None:
    from tipcheck.backends.server.selftest_model import record

    record(job, answer)


_JOBS: dict[str, Callable[[dict[str, Any], Answer], None]] = {
    "stage": _run_stage,
    "referee": _run_referee,
    "shaken": _run_shaken,
    "export": _export,
    "inputs": _make_inputs,
    "selftest": _selftest,
    "companion": _companion,
}


if __name__ == "__main__":
    sys.exit(run_job(json.loads(sys.argv[1])))
