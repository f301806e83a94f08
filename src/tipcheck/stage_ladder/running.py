"""Runs the stages of one ladder in their workers, and collects what they gave.

The lowest stage runs first: inputs that tipcheck made and that it refuses are refused by the model,
and are dropped for all. Then the others run, as many at a time as there are cores, unless the model
is so large that two of them would not fit.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.doctor.examine import lack_of, unmet_needs
from tipcheck.backends.outputs import apart
from tipcheck.backends.subject import LARGE, Subject
from tipcheck.stage_ladder.answers import StageRun, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tipcheck.backends.server.link import JobEnd, StageLink
    from tipcheck.backends.subject import Recorded
    from tipcheck.stage_ladder.lineup import Lined
    from tipcheck.stage_ladder.settings import Settings

REFEREE_LIMIT = 400_000_000
"""Bytes of parameters from which float64 would take more memory than a ladder may."""


@dataclass(frozen=True, slots=True)
class Course:
    """What every job of a ladder has in common.

    Attributes:
        subject: what is verified.
        folder: where its files are.
        model: the exported file, None without one.
        path: folders to find the user's modules in.
        sets: by input set, its file; empty for those that were dropped.
        size: bytes of parameters.
    """

    subject: Subject
    folder: Path
    model: Path | None
    path: tuple[str, ...]
    sets: list[str] = field(default_factory=list)
    size: int = 0

    def job(self, what: str, **more: object) -> dict[str, Any]:
        """Return a request."""
        return {
            "do": what,
            "model": str(self.model) if self.model else "",
            "source": self.subject.source,
            "path": list(self.path),
            "cwd": self.path[0] if self.path and self.subject.source else "",
            "inputs": [
                {"name": item.name, "shape": list(item.shape), "dtype": item.dtype}
                for item in self.subject.inputs
            ],
            "sets": list(self.sets),
            "names": [item.name for item in self.subject.sets],
            "fingerprint": self.subject.facts.get("parameters", ""),
            **more,
        }


class Running:
    """Runs stages through one link."""

    def __init__(
        self, link: StageLink, course: Course, settings: Settings, say: Callable[[str], None]
    ) -> None:
        """Say what to run and how."""
        self._link = link
        self._course = course
        self._settings = settings
        self._say = say
        build = link.build
        self._unmet = unmet_needs(build["cuda"], build["gpus"], build["tensorrt"])
        self._companion = ""
        self._row_outputs: list[int] | None = None
        self._lock = threading.Lock()
        self.dropped: dict[int, str] = {}

    def all(self, lined: Sequence[Lined]) -> dict[str, StageRun]:
        """Return what every stage gave, by name."""
        runs: dict[str, StageRun] = {}
        todo = []
        for item in lined:
            if item.refused:
                runs[item.way.name] = StageRun(item.way.name, unsupported=item.refused)
                continue
            recorded = self._recorded(item.way.name)
            if recorded is not None:
                runs[item.way.name] = self._from_record(recorded)
                continue
            lack = lack_of(item.way, self._unmet)
            if lack is not None:
                runs[item.way.name] = StageRun(
                    item.way.name, unsupported=lack.because, get=lack.get
                )
                continue
            todo.append(item)
        if todo and not any(run.answered for run in runs.values()):
            runs[todo[0].way.name] = self._try_inputs(todo[0])
            todo = todo[1:]
        with ThreadPoolExecutor(self._workers()) as pool:
            for run in pool.map(self._run, todo):
                runs[run.stage] = run
        return {item.way.name: runs[item.way.name] for item in lined}

    def referee(self) -> tuple[StageRun, str]:
        """Run the export in float64; return its answers, and what it was or why it is not."""
        course = self._course
        if not self._settings.referee:
            return StageRun("referee"), "none: it was switched off"
        if course.model is None:
            return StageRun("referee"), "none: there is no export"
        if course.size > REFEREE_LIMIT and not self._settings.full:
            why = "in float64 so large a model takes too much memory; --full runs it all the same"
            return StageRun("referee"), f"none: {why}"
        self._say("float64 referee")
        end = self._link.run(course.job("referee"), self._settings.time_limit)
        archives = _archives(end)
        if archives:
            return StageRun("referee", archives), "the export in float64"
        why = end.answer("problem") or f"its process {end.died}"
        return StageRun("referee"), f"none: {why}"

    def shaken(self, size: float, times: int) -> list[StageRun]:
        """Run the export on inputs with relative noise of a size, each of them several times."""
        course = self._course
        if course.model is None:
            return []
        self._say("inputs with noise")
        request = course.job("shaken", size=size)
        request |= {"sets": course.sets * times, "names": request["names"] * times}
        archives = _archives(self._link.run(request, self._settings.time_limit))
        runs = [StageRun("shaken") for _ in range(times)]
        for number, archive in archives.items():
            again, place = divmod(number, len(course.sets))
            runs[again].archives[place] = archive
        return runs

    # -------------------------------------------------------------------------------------------

    def _workers(self) -> int:
        if self._settings.workers:
            return self._settings.workers
        if self._course.size > LARGE:
            return 1
        return max(1, min(4, len(os.sched_getaffinity(0))))

    def _recorded(self, stage: str) -> Recorded | None:
        return next((item for item in self._course.subject.recorded if item.stage == stage), None)

    def _from_record(self, recorded: Recorded) -> StageRun:
        folder = self._course.folder
        archives = {number: folder / name for number, name in enumerate(recorded.archives) if name}
        spread = None
        for number, name in enumerate(recorded.again):
            if name and number in archives:
                apart = _between(archives[number], folder / name)
                spread = apart if spread is None else max(spread, apart)
        crash = recorded.problem if not archives else ""
        problems = {
            number: recorded.problem or "it gave no answer"
            for number, name in enumerate(recorded.archives)
            if not name
        }
        return StageRun(
            recorded.stage,
            archives,
            problems,
            crash=crash,
            spread=spread,
            seconds={"run": recorded.seconds},
        )

    def _try_inputs(self, item: Lined) -> StageRun:
        """Run the lowest stage, and drop the made inputs that it refuses."""
        run = self._run(item)
        if run.crash or run.unsupported:
            return run
        if not run.answered:
            return run  # it refuses everything: that is no matter of inputs
        for number, why in run.problems.items():
            if self._course.subject.sets[number].origin == "made":
                self.dropped[number] = why
                self._course.sets[number] = ""
        kept = {n: why for n, why in run.problems.items() if n not in self.dropped}
        return replace(run, problems=kept)

    def _run(self, item: Lined) -> StageRun:
        name, course = item.way.name, self._course
        self._say(name)
        request = course.job(
            "stage", stage=name, again=True, threads=self._settings.threads, state=None
        )
        request["calibration"] = self._settings.calibration
        if self._settings.state and (item.kind.inference or name == "executor"):
            request["state"] = self._state_request(only_rows=name == "executor")
        end = self._link.run(request, self._settings.time_limit)
        if self._row_outputs is None:
            self._row_outputs = end.answer("row_outputs")
        run = _run_of(name, end)
        if run.answered and not run.crash:
            run = replace(run, spread_fresh=self._fresh(name, run))
        return run

    def _fresh(self, stage: str, run: StageRun) -> float | None:
        """Run the first input set once more in a process of its own."""
        first = min(run.archives)
        sets = [
            archive if number == first else "" for number, archive in enumerate(self._course.sets)
        ]
        request = self._course.job("stage", stage=stage, threads=self._settings.threads)
        request |= {"sets": sets, "calibration": self._settings.calibration}
        end = self._link.run(request, self._settings.time_limit)
        archives = _archives(end)
        return _between(run.archives[first], archives[first]) if first in archives else None

    def _state_request(self, *, only_rows: bool) -> dict[str, Any] | None:
        course = self._course
        numbers = [number for number, archive in enumerate(course.sets) if archive]
        if not numbers:
            return None
        first = numbers[0]
        batched = [item.name for item in course.subject.inputs if item.shape[:1] == (-1,)]
        return {
            "feed": course.sets[first],
            "other": self._other_shape(first, numbers),
            "batched": batched,
            "companion": "" if only_rows else self._companion_model(),
            "only_rows": only_rows,
            "large": course.size > LARGE and not self._settings.full,
            "row_outputs": self._row_outputs if course.size > LARGE else None,
        }

    def _other_shape(self, first: int, numbers: Sequence[int]) -> str:
        """Return the first input set whose shapes differ from the usual ones."""
        usual = _shapes(self._course.sets[first])
        for number in numbers[1:]:
            if _shapes(self._course.sets[number]) != usual:
                return self._course.sets[number]
        return ""

    def _companion_model(self) -> str:
        with self._lock:
            if not self._companion:
                end = self._link.run({"do": "companion"}, self._settings.time_limit)
                self._companion = end.answer("model") or ""
            return self._companion


def _archives(end: JobEnd) -> dict[int, Path]:
    return {
        message["set"]: Path(message["archive"])
        for message in end.messages
        if "archive" in message and "set" in message
    }


def _run_of(stage: str, end: JobEnd) -> StageRun:
    archives = _archives(end)
    problems = {
        message["set"]: message["problem"]
        for message in end.messages
        if "set" in message and "problem" in message
    }
    unused = end.answer("unused")
    loading = next(
        (m["problem"] for m in end.messages if "problem" in m and not m.keys() & {"set", "check"}),
        "",
    )
    crash = f"does not load: {loading}" if loading else ""
    if not crash and not unused and not end.answer("done"):
        at = end.answer("at")
        crash = f"{end.died or 'ended without an answer'}{f', while {at}' if at else ''}"
    seconds = {
        "load": float(end.answer("loaded") or 0.0),
        "run": sum(float(m["seconds"]) for m in end.messages if "seconds" in m),
        "state": float(end.answer("state_seconds") or 0.0),
    }
    return StageRun(
        stage=stage,
        archives=archives,
        problems=problems,
        unsupported=unused or "",
        crash=crash,
        spread=end.answer("spread"),
        checks=tuple(message for message in end.messages if "check" in message),
        seconds=seconds,
        last_lines=end.last_lines if end.died else (),
        printed=end.printed,
        notes=(
            *(end.answer("notes") or ()),
            *(message["noticed"] for message in end.messages if "noticed" in message),
        ),
    )


def _shapes(archive: str) -> dict[str, tuple[int, ...]]:
    with opened(Path(archive)) as arrays:
        return {name: arrays[name].shape for name in arrays}


def _between(one: Path, other: Path) -> float:
    with opened(one) as first, opened(other) as second:
        if set(first) != set(second):
            return float("inf")
        return max((apart(first[name], second[name]) for name in first), default=0.0)
