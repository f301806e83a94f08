"""What is verified: a model, the inputs it is given, and the answers that are known already.

The contract between whoever has a model in hand (a command line, a user's own process in which an
export was caught) and the ladder, which runs it stage by stage in workers. Its durable form is a
folder with ``subject.json`` and ``.npz`` files beside it, so that the two need not be the same
process, nor run on the same day.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

FILE = "subject.json"
LARGE = 200_000_000
"""Bytes of parameters from which stages run one after the other, and as few copies as possible."""


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input of a model.

    Attributes:
        name: as the exported model calls it.
        shape: its axes; -1 where any length goes.
        dtype: numpy's name of its elements, ``bfloat16`` besides.
        below: for integers, the first value that the model does not accept, such as the number of
            rows of the embedding they choose from; None where that is not known.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    below: int | None = None


@dataclass(frozen=True, slots=True)
class InputSet:
    """One set of inputs: an array for every input of the model.

    Attributes:
        name: what people read, such as ``normal`` or ``zeros, batch 3``.
        archive: ``.npz`` file with an array per input, by its name; relative to the folder.
        origin: ``made`` for those that tipcheck drew, ``given`` for those of the user.
    """

    name: str
    archive: str
    origin: str = "made"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The answers of a stage that only the user's own process could run.

    Attributes:
        stage: as in the catalogue, ``eager`` or ``to_static``.
        archives: per input set, in their order, the ``.npz`` file with ``output_0`` and so on in
            the order of the exported model; an empty text where the stage gave no answer.
        again: the same from a second run, for those sets that were run twice; an empty text for
            the others. What differs is noise of the stage itself.
        names: what the process called these outputs, such as ``logits`` or ``[1]['boxes']``.
        seconds: wall time of the runs.
        problem: why answers are missing, empty when all are there.
    """

    stage: str
    archives: tuple[str, ...]
    again: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """A model with its inputs.

    Attributes:
        name: what people call it.
        model: the exported ``.json`` or ``.pdmodel`` file, its ``.pdiparams`` beside it; relative
            to the folder, or absolute. Empty when there is only a ``source`` that can export it.
        inputs: in the order in which the layer takes them.
        sets: what it is given; at least one.
        source: ``module:factory`` of a layer that a worker can make; empty without one.
        recorded: answers that are known already.
        facts: what else is known, for the report: ``training`` (``True`` where the layer was
            exported in training mode), ``parameters`` (a fingerprint), ``command`` and so on.
    """

    schema: ClassVar[str] = "tipcheck.subject/1"

    name: str
    model: str
    inputs: tuple[InputSpec, ...]
    sets: tuple[InputSet, ...]
    source: str = ""
    recorded: tuple[Recorded, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


def save_subject(subject: Subject, folder: Path) -> None:
    """Write ``subject.json`` beside the files it names."""
    from tipcheck import wire  # not above: the contract is also read where msgspec is missing

    (folder / FILE).write_text(wire.dumps(subject) + "\n", encoding="utf-8")


def load_subject(folder: Path) -> Subject:
    """Read a folder back.

    Raises:
        UsageError: there is no readable subject, or a file that it names is missing.
    """
    from tipcheck import wire

    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot be read ({error.strerror})", where=str(path)) from None
    subject = wire.loads(text, Subject, source=str(path))
    for name in named_files(subject):
        if not (folder / name).is_file():
            raise UsageError(f"names {name}, which is not there", where=str(path))
    return subject


def named_files(subject: Subject) -> list[str]:
    """Return every file that a subject names."""
    archives = [item.archive for item in subject.sets]
    for recorded in subject.recorded:
        archives += [*recorded.archives, *recorded.again]
    return [name for name in [subject.model, *archives] if name]


def output_name(index: int) -> str:
    """Return what the output at a place is called everywhere: exports lose the names of layers."""
    return f"output_{index}"
