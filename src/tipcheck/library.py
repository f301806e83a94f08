"""tipcheck as a library: what ``import tipcheck`` offers to a user's own process.

Stands outside the rooms, as it joins two of them: ``backends`` may run a layer that this process
holds, and ``stage_ladder`` judges what came of it. A layer cannot be sent to a worker, so the two
stages that run it, and the export, happen here; everything else happens in workers as usual.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tipcheck.backends.exports.program import as_exported, read_program
from tipcheck.backends.inputs.archives import read_feed
from tipcheck.backends.inputs.drawn import make_sets
from tipcheck.backends.layers.calls import evaluating, fingerprint, random_state
from tipcheck.backends.layers.recording import flat_inputs, record_layer
from tipcheck.backends.layers.source import declared_specs
from tipcheck.backends.subject import InputSet, InputSpec, Subject
from tipcheck.backends.told import told
from tipcheck.errors import UsageError
from tipcheck.report.ladder import show_ladder
from tipcheck.report.terminal import terminal
from tipcheck.stage_ladder.climb import climb
from tipcheck.stage_ladder.request import InputRequest, given_set
from tipcheck.stage_ladder.rung import LadderResult
from tipcheck.stage_ladder.settings import Settings
from tipcheck.stage_ladder.verifying import verify_target


@dataclass(frozen=True)
class Report:
    """What ``verify`` found.

    Attributes:
        result: the whole ladder.
        allow: what does not count as a failure.
    """

    result: LadderResult
    allow: frozenset[str] = frozenset()

    @property
    def good(self) -> bool:
        """Whether everything that was asked holds."""
        return self.result.good(self.allow)

    def __bool__(self) -> bool:
        return self.good

    def __str__(self) -> str:
        """Return the table and the sentence, as the command prints them."""
        console = terminal()
        with console.capture() as capture:
            show_ladder(self.result, console)
        return capture.get()

    def check(self) -> None:
        """Raise an AssertionError that says everything, unless all is good."""
        if not self.good:
            raise AssertionError(f"{self.result.sentence}\n\n{self}")


def verify(  # noqa: PLR0913 - all but two by name
    model: Any,  # noqa: ANN401 - a layer of Paddle, which has no types
    inputs: Any = None,  # noqa: ANN401 - see below
    *,
    spec: Sequence[Any] | None = None,
    stages: Sequence[str] = (),
    settings: Settings | None = None,
    seed: int = 0,
    allow: Sequence[str] = (),
) -> Report:
    """Verify a model and return what was found; nothing is raised for a model that is wrong.

    Args:
        model: a ``paddle.nn.Layer``; or a path of an export, or ``module:factory``, as on the
            command line.
        inputs: a dict of arrays by input name, a list of such dicts, a path of an ``.npz`` file or
            a list of those, or a function that returns dicts; made from the specs when None.
        spec: the arguments of a layer as ``paddle.static.InputSpec``, nested as the layer takes
            them; what the layer was converted with when None.
        stages: names of stages; all that can run here when empty.
        settings: everything else.
        seed: where random inputs start.
        allow: may hold ``suspect``.

    Raises:
        UsageError: something that was given cannot be used as it is.
        ToolError: Paddle does not start in a worker.
    """
    chosen = settings or Settings()
    if stages:
        chosen = replace(chosen, stages=_words(stages))
    with tempfile.TemporaryDirectory(prefix="tipcheck-verify-") as room:
        folder = Path(room)
        if isinstance(model, (str, Path)):
            request = InputRequest(archives=_archives(inputs, folder), seed=seed)
            result = verify_target(str(model), request, chosen)
        else:
            subject = _export(model, spec, inputs, folder, seed, chosen)
            result = climb(subject, folder, chosen)
    return Report(result, frozenset(_words(allow)))


def _words(given: Sequence[str]) -> tuple[str, ...]:
    """Return names as a tuple; a text is what the command line takes, with commas."""
    if isinstance(given, str):
        return tuple(part.strip() for part in given.split(",") if part.strip())
    return tuple(given)


def _archives(inputs: Any, folder: Path) -> tuple[Path, ...]:  # noqa: ANN401
    found = []
    for number, item in enumerate(_listed(inputs)):
        if isinstance(item, (str, Path)):
            found.append(Path(item).absolute())
        else:
            path = folder / f"mine_{number}.npz"
            arrays: dict[str, Any] = {name: np.asarray(array) for name, array in item.items()}
            np.savez(path, **arrays)
            found.append(path)
    return tuple(found)


def _listed(inputs: Any) -> list[Any]:  # noqa: ANN401
    if inputs is None:
        return []
    if isinstance(inputs, Callable):  # type: ignore[arg-type]
        return _listed(inputs())
    if isinstance(inputs, (str, Path, Mapping)):
        return [inputs]
    listed = [] if hasattr(inputs, "shape") else list(inputs)
    for item in listed or [inputs]:
        if not isinstance(item, (str, Path, Mapping)):
            kind = type(item).__name__
            hint = "give {'name': array, ...}, or the path of an .npz file"
            raise UsageError(f"inputs hold a {kind}, which says no names", hint=hint)
    return listed


def _export(
    layer: Any,  # noqa: ANN401
    spec: Sequence[Any] | None,
    inputs: Any,  # noqa: ANN401
    folder: Path,
    seed: int,
    settings: Settings,
) -> Subject:
    """Export a layer, run it here, and return the subject."""
    import paddle  # noqa: PLC0415 - exports need no other way in, and start without it

    if not isinstance(layer, paddle.nn.Layer):
        raise UsageError(f"a {type(layer).__name__} is neither a layer nor a path")
    specs = spec if spec is not None else declared_specs(layer)
    if specs is None:
        raise UsageError(
            f"{type(layer).__name__} does not say what it takes",
            hint="give spec=[paddle.static.InputSpec(...), ...]",
        )
    flat = flat_inputs(specs)
    facts = {"layer": type(layer).__name__, "parameters": fingerprint(layer)}
    facts["training"] = str(layer.training)
    prefix, model = folder / "inference", ""
    try:
        with evaluating(layer), random_state(paddle):
            paddle.jit.save(layer, str(prefix), input_spec=list(specs))
        written = [f"inference{suffix}" for suffix in (".json", ".pdmodel")]
        model = next(name for name in written if (folder / name).exists())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is the answer
        facts["export_problem"] = told(error)
    if model:
        flat = as_exported(flat, read_program(folder / model).inputs)
    sets = _sets(flat, inputs, folder, seed)
    wanted = [
        stage for stage in ("eager", "to_static") if not settings.stages or stage in settings.stages
    ]
    recorded, notes = record_layer(layer, list(specs), flat, sets, folder, stages=wanted)
    if notes:
        facts["notes"] = "; ".join(notes)
    return Subject(type(layer).__name__, model, tuple(flat), sets, recorded=recorded, facts=facts)


def _sets(
    specs: Sequence[InputSpec],
    inputs: Any,  # noqa: ANN401
    folder: Path,
    seed: int,
) -> tuple[InputSet, ...]:
    if inputs is None:
        return make_sets(specs, folder, seed=seed)
    sets = []
    for number, item in enumerate(_listed(inputs)):
        feed, name = item, f"inputs {number}"
        if isinstance(item, (str, Path)):
            feed, name = read_feed(Path(item)), Path(item).name
        sets.append(given_set(feed, specs, folder, number, name, name))
    return tuple(sets)
