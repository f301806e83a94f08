"""Layers that a worker makes itself from ``module:factory``, exports, and runs as they are.

The factory is called in every worker anew, from the same seeds; a fingerprint of the parameters
shows whether it made the same layer again.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.exports.program import as_exported, read_program
from tipcheck.backends.layers.calls import LayerCall, fingerprint, flat_specs
from tipcheck.backends.server.jobs import place_of
from tipcheck.backends.stages import UnusedError
from tipcheck.backends.subject import InputSpec
from tipcheck.backends.told import told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tipcheck.backends.stages import Place

    Answer = Callable[[Mapping[str, Any]], None]

SEED = 0


def find_object(source: str, path: tuple[str, ...]) -> Any:  # noqa: ANN401
    """Return what ``module:name`` or ``file.py:name`` stands for.

    Raises:
        ValueError: there is no such thing; the message says what is missing.
    """
    module_name, _, name = source.rpartition(":")
    for folder in reversed(path):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    if module_name.endswith(".py"):
        file = next(
            (Path(f) / module_name for f in path if (Path(f) / module_name).is_file()), None
        )
        file = Path(module_name) if file is None else file
        if not file.is_file():
            raise ValueError(f"there is no file {module_name}")
        sys.path.insert(0, str(file.parent.absolute()))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        if spec is None or spec.loader is None:
            raise ValueError(f"{module_name} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(module_name)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{module_name} has no {name!r}")
        found = getattr(found, part)
    return found


def make_layer(place: Place) -> tuple[Any, Any]:
    """Return the layer, in evaluation mode, and its InputSpecs as the factory gave them."""
    import paddle

    _seed(paddle)
    factory = find_object(place.source, place.path)
    _seed(paddle)
    made = factory() if callable(factory) and not isinstance(factory, paddle.nn.Layer) else factory
    layer, specs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(layer, paddle.nn.Layer):
        raise TypeError(f"{place.source} gave a {type(layer).__name__}, not a paddle.nn.Layer")
    layer.eval()
    given = place.extra.get("specs") or ()
    if given:
        specs = [
            paddle.static.InputSpec(
                [None if extent < 0 else extent for extent in item["shape"]],
                item["dtype"],
                item["name"],
            )
            for item in given
        ]
    if specs is None:
        specs = declared_specs(layer)
    return layer, specs


def declared_specs(layer: Any) -> Any:  # noqa: ANN401
    """Return the InputSpecs that a layer was converted with, None when it says nothing."""
    forward = layer.forward
    for name in ("_input_spec", "input_spec"):
        found = getattr(forward, name, None)
        if found:
            return list(found)
    return None


def _seed(paddle: Any) -> None:  # noqa: ANN401
    random.seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002
    paddle.seed(SEED)


def export_source(job: dict[str, Any], answer: Answer) -> None:
    """Make the layer, say what it is, and export it."""
    import paddle

    place = place_of(job)
    answer({"at": "making the layer"})
    try:
        layer, specs = make_layer(place)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is the answer
        answer({"no_layer": told(error)})
        return
    if specs is None:
        answer({"no_specs": True})
        return
    flat = flat_specs(specs)
    inputs: list[dict[str, Any]] = [
        {
            "name": str(item.name or f"x{index}"),
            "shape": [-1 if extent is None else int(extent) for extent in item.shape],
            "dtype": str(item.dtype).rpartition(".")[2].lower(),
        }
        for index, item in enumerate(flat)
    ]
    answer({"layer": type(layer).__name__, "inputs": inputs, "fingerprint": fingerprint(layer)})
    answer({"at": "exporting"})
    prefix = place.folder / "inference"
    try:
        paddle.jit.save(layer, str(prefix), input_spec=list(specs))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is the answer
        answer({"no_export": told(error)})
        return
    suffix = ".json" if prefix.with_suffix(".json").exists() else ".pdmodel"
    model = prefix.with_suffix(suffix)
    known = [InputSpec(item["name"], tuple(item["shape"]), item["dtype"]) for item in inputs]
    called = as_exported(known, read_program(model).inputs)
    renamed = [item | {"name": one.name} for item, one in zip(inputs, called, strict=True)]
    answer({"inputs": renamed, "model": str(model)})


def start_layer(place: Place, *, static: bool) -> LayerCall:
    """Return the layer, ready to run; for the stages that run it and not its export."""
    if not place.source:
        raise UnusedError("an exported model has no layer; give module:factory to compare with it")
    layer, specs = make_layer(place)
    wanted = place.extra.get("fingerprint")
    if wanted and fingerprint(layer) != wanted:
        raise RuntimeError(
            f"{place.source} gives other weights each time it is called; seed it, or load a file"
        )
    names = [item["name"] for item in place.inputs]
    return LayerCall(layer, specs, names, static=static)
