"""Makes subjects of what a command's saves left: the export, its inputs, the layer's answers."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.capture.files import KEPT
from tipcheck.backends.exports.program import read_program
from tipcheck.backends.subject import InputSet, InputSpec, Recorded, Subject, save_subject
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FORMS = (".json", ".pdmodel")
_CLOCK = 2.0
_MUCH = 1_000_000
"""Bytes printed by a layer that are worth a word."""


@dataclass(frozen=True, slots=True)
class Captured:
    """One exported function of one save.

    Attributes:
        name: the path as the command said it.
        folder: holds its subject; None when there is nothing to verify.
        problem: why there is nothing to verify, or an empty text.
        crashed: whether the layer's own process died.
        last_lines: the end of what the layer printed, where that helps.
        notes: what else a reader has to know.
    """

    name: str
    folder: Path | None
    problem: str = ""
    crashed: bool = False
    last_lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def collect(folder: Path, command: str) -> list[Captured]:
    """Return what a command has exported, in the order of its saves.

    Args:
        folder: where the captures are.
        command: as it was typed, for the record.
    """
    captures: list[Captured] = []
    for note in sorted(folder.glob("*/saved.json")):
        captures += _of_save(note.parent, json.loads(note.read_text("utf-8")), command)
    return captures


def _of_save(capture: Path, saved: Mapping[str, Any], command: str) -> Iterator[Captured]:
    end = _read(capture / "end.json")
    files = sorted(capture.glob("answers-*.json"))
    whole = (capture / "done.json").exists()
    printed = int(end.get("printed", 0))
    for file in files:
        answers = json.loads(file.read_text("utf-8"))
        number = file.stem.partition("-")[2]
        one = _of_function(capture, capture / number, saved, answers, command)
        if printed > _MUCH:
            told = f"the layer printed {printed / 1e6:.0f} MB when it ran, which were not kept"
            one = replace(one, notes=(*one.notes, told))
        yield one
    if not whole:
        why = _why_not(end)
        last = tuple(end.get("last_lines", ()))
        yield Captured(str(saved["given"]), None, why, crashed=True, last_lines=last)


def _why_not(end: Mapping[str, Any]) -> str:
    """Return why there are no answers."""
    if not end:
        return "the process that was to run the layer was ended from outside"
    if end.get("trouble"):
        return f"the layer could not be run beside the command: {end['trouble']}"
    if end.get("timed_out"):
        return f"the layer itself ran out of time (after {end['limit']:g} s)"
    if end.get("signal"):
        try:
            name = signal.Signals(end["signal"]).name
        except ValueError:
            name = f"signal {end['signal']}"
        return f"the layer itself died on {name}"
    last = [line for line in end.get("last_lines", ()) if line.strip()]
    if last and end.get("exit_code") == 1:
        return f"the layer itself could not be run: {last[-1]}"
    return f"the layer itself ended its process with code {end.get('exit_code')}"


def _of_function(
    capture: Path,
    own: Path,
    saved: Mapping[str, Any],
    answers: Mapping[str, Any],
    command: str,
) -> Captured:
    name = f"{saved['given']}{answers['suffix']}"
    notes = _notes(answers)
    if answers["problem"]:
        told = f"the layer itself fails: {answers['problem']}"
        return Captured(name, None, told, crashed=True)
    try:
        model = _model(capture, saved, answers["suffix"])
        subject = _subject(name, model, answers, command)
    except UsageError as error:
        return Captured(name, None, str(error), notes=notes)
    save_subject(subject, own)
    return Captured(name, own, notes=notes)


def _model(capture: Path, saved: Mapping[str, Any], suffix: str) -> Path:
    """Return the exported file: a copy where the command took it away, else where it lies."""
    prefix = Path(f"{saved['path']}{suffix}")
    for folder in (capture / KEPT, prefix.parent):
        found = [folder / f"{prefix.name}{form}" for form in _FORMS]
        found = [file for file in found if file.is_file()]
        if found:
            newest = max(found, key=lambda file: file.stat().st_mtime)
            if folder == prefix.parent and newest.stat().st_mtime < saved["time"] - _CLOCK:
                raise UsageError("the save wrote nothing: the file is older", where=str(newest))
            return newest
    raise UsageError("the save wrote no .json or .pdmodel file", where=str(prefix))


def _subject(name: str, model: Path, answers: Mapping[str, Any], command: str) -> Subject:
    exported = read_program(model)
    known = [InputSpec(**{**one, "shape": tuple(one["shape"])}) for one in answers["inputs"]]
    by_name = {spec.name: spec for spec in known}
    inputs = []
    for wanted in exported.inputs:
        mine = by_name.get(wanted.name)
        if mine is None:
            raise UsageError(
                f"the export asks for an input {wanted.name!r} that the layer was not given "
                f"({', '.join(by_name) or 'it has none'})",
                where=str(model),
            )
        below = [limit for limit in (wanted.below, mine.below) if limit is not None]
        inputs.append(replace(wanted, below=min(below, default=None)))
    recorded = Recorded(
        stage="eager",
        archives=tuple(answers["archives"]),
        again=tuple(answers["again"]),
        names=tuple(answers["names"]),
        seconds=float(answers["seconds"]),
        problem=str(answers["problem"]),
    )
    facts = {key: str(value) for key, value in answers["facts"].items()}
    return Subject(
        name=name,
        model=str(model.absolute()),
        inputs=tuple(inputs),
        sets=tuple(InputSet(**one) for one in answers["sets"]),
        recorded=(recorded,),
        facts={**facts, "command": command, "outputs": ", ".join(answers["dtypes"])},
    )


def _notes(answers: Mapping[str, Any]) -> tuple[str, ...]:
    facts, notes = answers["facts"], []
    if facts.get("training") == "True":
        notes.append(
            "the layer was saved in training mode (dropout drops, normalisation uses the batch); "
            "call eval() before jit.save"
        )
    elif facts.get("training_inside"):
        notes.append(f"saved in training mode inside: {facts['training_inside']}")
    if facts.get("random_state") and facts.get("training") != "True":
        notes.append(
            f"the layer changes the global random state ({facts['random_state']}) when it runs"
        )
    notes += [f"left out, because the layer itself fails: {one}" for one in answers["left_out"]]
    return tuple(notes)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
