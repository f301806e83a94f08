"""What to verify and with which inputs, as a user says it; and the subject that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.exports.parameters import check_export
from tipcheck.backends.exports.program import read_program
from tipcheck.backends.inputs.archives import read_feed
from tipcheck.backends.inputs.drawn import make_sets, write_set
from tipcheck.backends.subject import FILE, LARGE, InputSet, InputSpec, Subject, load_subject
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tipcheck.backends.server.link import JobEnd, StageLink

_SUFFIXES = (".json", ".pdmodel")
_USUAL = ("inference", "model")


@dataclass(frozen=True, slots=True)
class InputRequest:
    """Where the inputs come from.

    Attributes:
        archives: ``.npz`` files with an array per input.
        function: ``module:function`` that gives one set of inputs, or several.
        images: folder of images.
        preprocess: ``module:function`` from the path of an image to the inputs.
        most: how many images at most.
        kinds: kinds of made inputs; all of them when empty.
        seed: where random numbers start.
        specs: specs of a layer that does not say them itself.
        full: whether large models get inputs of several sizes too.
    """

    archives: tuple[Path, ...] = ()
    function: str = ""
    images: str = ""
    preprocess: str = ""
    most: int = 8
    kinds: tuple[str, ...] = ()
    seed: int = 0
    specs: tuple[InputSpec, ...] = ()
    full: bool = False

    @property
    def given(self) -> bool:
        """Whether the user gives inputs."""
        return bool(self.archives or self.needs_worker)

    @property
    def needs_worker(self) -> bool:
        """Whether the user's own code makes inputs."""
        return bool(self.function or self.images)


def is_source(target: str) -> bool:
    """Whether a target is ``module:factory``, and no path."""
    name, _, attribute = target.rpartition(":")
    return bool(name) and attribute.isidentifier() and not Path(target).exists()


def find_export(target: Path) -> Path:
    """Return the exported file that a path stands for.

    Raises:
        UsageError: there is none, or its parameters are missing.
    """
    found = _exported(target)
    if found is None:
        raise UsageError(
            "there is no exported model",
            where=str(target),
            hint="name the .json or .pdmodel file, its folder, or module:factory of a layer",
        )
    check_export(found)
    return found


def _exported(target: Path) -> Path | None:
    if target.is_file():
        return target
    for suffix in _SUFFIXES:
        with_suffix = target.with_name(target.name + suffix)
        if with_suffix.is_file():
            return with_suffix
    if not target.is_dir():
        return None
    named = [target / f"{name}{suffix}" for name in _USUAL for suffix in _SUFFIXES]
    usual = [path for path in named if path.is_file()]
    if usual:
        return usual[0]
    found = [
        path
        for path in sorted(target.iterdir())
        if path.suffix in _SUFFIXES and path.with_suffix(".pdiparams").is_file()
    ]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise UsageError(f"holds several exports ({names})", where=str(target), hint="name one")
    return found[0] if found else None


def subject_of_export(
    model: Path, request: InputRequest, folder: Path, link: StageLink | None, path: Sequence[str]
) -> Subject:
    """Return an exported model with its inputs; the link is for ``request.needs_worker``."""
    program = read_program(model)
    if not program.inputs and not request.given:
        raise UsageError("takes no inputs, so there is nothing to vary", where=str(model))
    sets = _sets(program.inputs, request, folder, link, path, _is_large(model))
    return Subject(
        name=f"{model.parent.name}/{model.name}" if model.parent.name else model.name,
        model=str(model.absolute()),
        inputs=program.inputs,
        sets=sets,
        facts={"format": program.form, "ops": str(sum(program.kinds.values()))},
    )


def subject_of_source(
    source: str,
    request: InputRequest,
    folder: Path,
    link: StageLink,
    path: Sequence[str],
    time_limit: float,
) -> Subject:
    """Have a worker make and export a layer; return it with its inputs.

    Raises:
        UsageError: the factory fails, or nobody says what the layer takes.
    """
    specs = [
        {"name": item.name, "shape": list(item.shape), "dtype": item.dtype}
        for item in request.specs
    ]
    job = {"do": "export", "source": source, "path": list(path), "specs": specs}
    job["cwd"] = path[0] if path else ""
    end = link.run(job, time_limit)
    if end.answer("no_layer"):
        raise UsageError(f"gives no layer ({end.answer('no_layer')})", where=source)
    if end.answer("no_specs"):
        raise UsageError(
            "the layer does not say what it takes",
            where=source,
            hint="give --spec NAME:float32:-1,3,224,224 or return (layer, [InputSpec, ...])",
        )
    if end.answer("inputs") is None:
        raise UsageError(f"making the layer {end.died}", where=source)
    facts = {"layer": end.answer("layer"), "parameters": end.answer("fingerprint")}
    inputs = tuple(
        InputSpec(item["name"], tuple(item["shape"]), item["dtype"])
        for item in end.answer("inputs")
    )
    model = end.answer("model") or ""
    if model:
        program = read_program(Path(model))
        by_name = {item.name: item for item in program.inputs}
        inputs = tuple(by_name.get(item.name, item) for item in inputs)
        unused = [item.name for item in inputs if item.name not in by_name]
        if unused:
            facts["unused_inputs"] = ", ".join(unused)
    else:
        facts["export_problem"] = _why(end)
    return Subject(
        name=source,
        model=model,
        inputs=inputs,
        sets=_sets(inputs, request, folder, link, path, bool(model) and _is_large(Path(model))),
        source=source,
        facts=facts,
    )


def subject_in_folder(folder: Path) -> Subject | None:
    """Return the subject that a folder holds, None when it holds none."""
    return load_subject(folder) if (folder / FILE).is_file() else None


def _why(end: JobEnd) -> str:
    return str(end.answer("no_export") or f"the process {end.died or 'ended without an answer'}")


def _sets(
    specs: Sequence[InputSpec],
    request: InputRequest,
    folder: Path,
    link: StageLink | None,
    path: Sequence[str],
    large: bool,  # noqa: FBT001
) -> tuple[InputSet, ...]:
    given = [
        _from_archive(file, specs, folder, number) for number, file in enumerate(request.archives)
    ]
    if request.needs_worker and link is not None:
        given += _from_function(specs, request, link, path, folder, len(given))
    if given:
        return tuple(given)
    one_size = large and not request.full
    return make_sets(specs, folder, seed=request.seed, kinds=request.kinds, one_size=one_size)


def _is_large(model: Path) -> bool:
    parameters = model.with_suffix(".pdiparams")
    return parameters.is_file() and parameters.stat().st_size > LARGE


def _from_archive(file: Path, specs: Sequence[InputSpec], folder: Path, number: int) -> InputSet:
    feed = read_feed(file)
    return given_set(feed, specs, folder, number, file.name, str(file))


def given_set(
    feed: Mapping[str, Any],
    specs: Sequence[InputSpec],
    folder: Path,
    number: int,
    name: str,
    where: str,
) -> InputSet:
    """Write one set of the user's inputs, once it is seen to fit the model.

    Raises:
        UsageError: an input is missing, of another dtype or of another shape.
    """
    kept = {}
    for spec in specs:
        if spec.name not in feed:
            told = f"holds no input {spec.name!r}, but {', '.join(feed) or 'nothing'}"
            wanted = ", ".join(item.name for item in specs)
            raise UsageError(told, where=where, hint=f"the model takes {wanted}")
        array = np.asarray(feed[spec.name])
        stored = "uint16" if spec.dtype == "bfloat16" else spec.dtype
        if array.dtype.name != stored:
            told = f"input {spec.name!r} is {array.dtype.name}, the model takes {spec.dtype}"
            hint = f"save it with .astype({stored!r})"
            raise UsageError(told, where=where, hint=hint)
        fits = array.ndim == len(spec.shape) and all(
            extent in (-1, length) for extent, length in zip(spec.shape, array.shape, strict=True)
        )
        if not fits:
            told = f"input {spec.name!r} has shape {list(array.shape)}"
            raise UsageError(told, where=where, hint=f"the model takes {list(spec.shape)}")
        kept[spec.name] = array
    return write_set(kept, folder, number, name, "given")


def _from_function(
    specs: Sequence[InputSpec],
    request: InputRequest,
    link: StageLink,
    path: Sequence[str],
    folder: Path,
    start: int,
) -> list[InputSet]:
    job = {
        "do": "inputs",
        "inputs": [{"name": item.name} for item in specs],
        "path": list(path),
        "callable": request.function,
        "images": request.images,
        "preprocess": request.preprocess,
        "most": request.most,
        "room": str(folder),
        "cwd": path[0] if path else "",
    }
    where = request.preprocess or request.function
    end = link.run(job, 300.0)
    problem = end.answer("problem") or end.died
    if problem:
        raise UsageError(f"gives no inputs ({problem})", where=where)
    made = [message for message in end.messages if "archive" in message]
    if not made:
        told = "there are no images" if request.images else "it gave no inputs"
        raise UsageError(told, where=request.images or where)
    sets = []
    for number, message in enumerate(made):
        with np.load(folder / message["archive"], allow_pickle=False) as arrays:
            feed = {name: arrays[name] for name in arrays.files}
        name = message["given"]
        sets.append(given_set(feed, specs, folder, start + number, name, f"{where}, {name}"))
    return sets
