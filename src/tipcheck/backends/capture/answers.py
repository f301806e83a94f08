"""The answers of a layer itself, in the forked worker: inputs from the specs, eager execution.

The specs are found where ``jit.save`` finds them, by its own functions, so that a layer converted
before, one that was only called, a plain function and further methods are all seen as the export
sees them. Outputs are put in the order of the exported model.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .files import write_json

FILE = "answers-{}.json"
_OLDER_TYPES = {"fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "bfloat16"}
"""What programs of before Paddle 3 call their types."""
_SIZES, _FACTOR = ("im_shape", "ori_shape", "im_size"), "scale_factor"
_PICTURE_AXES = 4
_SOURCE = Path(__file__).parents[2]


@dataclass
class Call:
    """One function that an export holds: what to call, and with what.

    Attributes:
        suffix: what the export's path has besides; empty for ``forward``.
        run: takes the arguments; gives the outputs in the order of the exported model.
        specs: the inputs, ``InputSpec`` of Paddle, by the exported model's names.
        facts: what else is known, in words.
    """

    suffix: str
    run: Callable[[Mapping[str, Any]], list[tuple[str, Any]]]
    specs: dict[str, Any]
    facts: dict[str, str] = field(default_factory=dict)


@dataclass
class Answers:
    """What is written down about one function, for the tool to make a subject of."""

    suffix: str
    inputs: list[dict[str, Any]]
    sets: list[dict[str, str]] = field(default_factory=list)
    archives: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    problem: str = ""
    left_out: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)


def answer(
    kind: str, path: str, folder: str, settings: Mapping[str, Any], what: tuple[Any, ...]
) -> None:
    """Write the answers of everything that one save exports into its folder."""
    import paddle

    inputs = _rooms("tipcheck.backends.inputs.drawn")
    if kind == "jit.save":
        from .layers import calls_of_layer

        paddle.disable_static()
        paddle.jit.enable_to_static(False)  # noqa: FBT003 - Paddle's own
        calls = calls_of_layer(*what)
        around: Any = paddle.no_grad
    else:
        from .programs import call_of_program

        calls = iter([call_of_program(*what)])
        around = _nothing
    number = 0
    for call in calls:
        with around():
            _answer_one(call, folder, number, settings, inputs)
        number += 1
    write_json(os.path.join(folder, "done.json"), {"functions": number, "path": path})


class _nothing:  # noqa: N801 - stands for a context manager of Paddle
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _rooms(name: str) -> Any:  # noqa: ANN401 - a module
    """Import a module of tipcheck into a process that may not have it installed."""
    if "tipcheck" not in sys.modules:
        place = _SOURCE / "__init__.py"
        spec = importlib.util.spec_from_file_location(
            "tipcheck", place, submodule_search_locations=[str(_SOURCE)]
        )
        assert spec is not None  # noqa: S101 - the file is there
        assert spec.loader is not None  # noqa: S101
        package = importlib.util.module_from_spec(spec)
        sys.modules["tipcheck"] = package
        spec.loader.exec_module(package)
    return importlib.import_module(name)


def _answer_one(
    call: Call,
    folder: str,
    number: int,
    settings: Mapping[str, Any],
    inputs: Any,  # noqa: ANN401 - a module
) -> None:
    own = Path(folder, str(number))
    own.mkdir()
    subject = sys.modules["tipcheck.backends.subject"]
    specs = [_plain(name, spec, subject.InputSpec) for name, spec in call.specs.items()]
    seed = int(settings.get("seed", 0))
    limits = _limits(call, specs, inputs, seed) if call.facts.get("finds_limits") else {}
    call.facts.pop("finds_limits", None)
    specs = [
        subject.InputSpec(each.name, each.shape, each.dtype, limits.get(each.name))
        for each in specs
    ]
    answers = Answers(call.suffix, [asdict(spec) for spec in specs], facts=call.facts)
    try:
        sets = inputs.make_sets(specs, own, seed=seed, kinds=settings.get("kinds", ("normal",)))
        _make_sense(sets, own)
        _run_sets(call, sets, own, answers)
    finally:
        text = json.dumps(asdict(answers))
        Path(folder, FILE.format(number)).write_text(text, encoding="utf-8")


def _make_sense(sets: Sequence[Any], own: Path) -> None:
    """Give the inputs of detectors that say how large the picture is values that can be true."""
    import numpy as np

    for one in sets:
        with np.load(own / one.archive) as archive:
            feed = {name: archive[name] for name in archive.files}
        pictures = [array for array in feed.values() if array.ndim == _PICTURE_AXES]
        told = [name for name in feed if name in _SIZES or name == _FACTOR]
        if not pictures or not told:
            continue
        for name in told:
            value = [1.0, 1.0] if name == _FACTOR else pictures[0].shape[2:]
            filled = np.broadcast_to(np.asarray(value), feed[name].shape)
            feed[name] = filled.astype(feed[name].dtype)
        np.savez(own / one.archive, **feed)


def _run_sets(call: Call, sets: Sequence[Any], own: Path, answers: Answers) -> None:
    import numpy as np

    problems = []
    numbers = random_state()
    for number, one in enumerate(sets):
        with np.load(own / one.archive) as archive:
            feed = {name: archive[name] for name in archive.files}
        begin = time.perf_counter()
        try:
            found = call.run(feed)
        except (Exception, SystemExit) as error:
            told = " ".join(f"{type(error).__name__}: {error}".split())
            if isinstance(error, SystemExit):
                told = f"it calls sys.exit({error.code!r})"
            problems.append(told)
            answers.left_out.append(f"{one.name}: {told[:200]}")
            continue
        answers.seconds += time.perf_counter() - begin
        first = not answers.sets
        answers.sets.append(asdict(one))
        answers.archives.append(_write(own, f"eager_{number}.npz", found))
        again = _write(own, f"eager_{number}_again.npz", call.run(feed)) if first else ""
        answers.again.append(again)
        answers.names = [name for name, _ in found]
        answers.dtypes = [_dtype(value) for _, value in found]
    changed = [name for name, state in random_state().items() if state != numbers[name]]
    if changed:
        answers.facts["random_state"] = ", ".join(changed)
    if not answers.sets:
        answers.problem = problems[0] if problems else "it was given no inputs"


def random_state() -> dict[str, object]:
    """Return the state of every generator that all code of a process shares."""
    import random

    import numpy as np
    import paddle

    # Of a generator of Paddle, the text has its address too.
    known = [
        [word for word in str(state).split() if not word.startswith("0x")]
        for state in paddle.get_rng_state()
    ]
    legacy = np.random.get_state()  # noqa: NPY002 - the one that is shared
    return {"random": random.getstate(), "numpy": str(legacy), "paddle": known}


def _write(own: Path, name: str, found: Sequence[tuple[str, Any]]) -> str:
    import numpy as np

    arrays = {
        f"output_{place}": np.asarray(_array(value)) for place, (_, value) in enumerate(found)
    }
    np.savez(own / name, **arrays)  # type: ignore[arg-type]
    return name


def _array(value: Any) -> Any:  # noqa: ANN401 - a tensor or an array
    return value.numpy() if hasattr(value, "numpy") else value


def _dtype(value: Any) -> str:  # noqa: ANN401 - likewise
    word = str(value.dtype).rpartition(".")[2].lower()
    return _OLDER_TYPES.get(word, word)


def _plain(name: str, spec: Any, kind: Any) -> Any:  # noqa: ANN401 - of Paddle
    shape = tuple(-1 if extent is None else int(extent) for extent in spec.shape)
    return kind(name, shape, _dtype(spec))


def _limits(call: Call, specs: Sequence[Any], inputs: Any, seed: int) -> dict[str, int]:  # noqa: ANN401
    """Return how many rows the tables have that integer inputs choose from.

    The tables that are looked up in a run are asked which input their indices are: with inputs of
    random zeros and ones, no two are the same.
    """
    import numpy as np
    import paddle

    whole = {spec.name for spec in specs if spec.dtype in ("int32", "int64")}
    if not whole:
        return {}
    feed = inputs.make_feed(specs, "normal", inputs.Size(), seed)
    limits: dict[str, int] = {}
    functional = paddle.nn.functional
    original = functional.embedding

    def embedding(x: Any, weight: Any, *others: Any, **named: Any) -> Any:  # noqa: ANN401
        asked = np.asarray(x.numpy())
        for name in whole:
            mine = feed[name]
            if asked.size == mine.size and np.array_equal(asked.reshape(-1), mine.reshape(-1)):
                limits[name] = min(limits.get(name, weight.shape[0]), int(weight.shape[0]))
        return original(x, weight, *others, **named)

    functional.embedding = embedding
    try:
        call.run(feed)
    except Exception:
        return limits
    finally:
        functional.embedding = original
    return limits


def iterate_tensors(outputs: Any, tensor: type) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield the tensors of nested outputs in the order of an export, each with its place.

    Dicts go by their sorted keys; a tensor that comes twice counts once.
    """
    seen: set[int] = set()
    for place, value in _walk("", outputs):
        if isinstance(value, tensor) and id(value) not in seen:
            seen.add(id(value))
            yield place or "output", value


def _walk(place: str, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _walk(f"{place}[{key!r}]" if place else str(key), value[key])
    elif isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None)
        for index, item in enumerate(value):
            yield from _walk(f"{place}.{names[index]}" if names else f"{place}[{index}]", item)
    else:
        yield place, value
