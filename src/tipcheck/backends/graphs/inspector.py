"""Reads what TensorRT's inspector writes: which ops of an engine were fused into which layer.

Paddle writes one ``engine_info_*.json`` per engine when ``enable_tensorrt_inspector`` was called.
Tensors inside a fused layer do not exist any more, so these files say which can be looked at
without keeping TensorRT from fusing what it fuses in production.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

PATTERN = "engine_info_*.json"
_COPIES = ("Reformat", "NoOp")


@dataclass(frozen=True, slots=True)
class EngineLayer:
    """One layer of an engine.

    Attributes:
        engine: name of the file it was read from.
        name: as TensorRT calls it; the names of what was fused, joined by `` + ``.
        kind: TensorRT's type of layer; empty where the file does not say.
        inputs: names of the tensors it reads.
        outputs: names of the tensors it writes.
    """

    engine: str
    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def copies(self) -> bool:
        """Whether it only brings a tensor into another format."""
        return self.kind.startswith(_COPIES) or self.name.startswith("Reformatting")


def read_engines(place: Path) -> tuple[EngineLayer, ...]:
    """Return the layers of one inspector file, or of all in a folder, in the order of the engine.

    Raises:
        UsageError: there is none, or one is no such file.
    """
    files = sorted(place.glob(PATTERN)) if place.is_dir() else [place]
    if not files:
        raise UsageError(
            f"there is no {PATTERN}",
            where=str(place),
            hint="run a trt mode once with the inspector on, which is the default",
        )
    return tuple(layer for file in files for layer in _layers(file))


def visible_outputs(layers: tuple[EngineLayer, ...]) -> tuple[str, ...]:
    """Return the tensors that exist after fusion, each once, without copies in other formats."""
    names = (name for layer in layers if not layer.copies for name in layer.outputs)
    return tuple(dict.fromkeys(names))


def _layers(file: Path) -> list[EngineLayer]:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        entries = told["Layers"]
        return [_layer(file.name, entry) for entry in entries]
    except OSError as error:
        raise UsageError(f"cannot be read ({error.strerror})", where=str(file)) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            "is not what TensorRT's inspector writes",
            where=str(file),
            hint="give an engine_info_*.json from the optimisation cache",
        ) from None


def _layer(engine: str, entry: Any) -> EngineLayer:  # noqa: ANN401 - any JSON value
    if isinstance(entry, str):  # an engine that was built without details names its layers only
        return EngineLayer(engine, entry, "", (), ())
    return EngineLayer(
        engine=engine,
        name=str(entry["Name"]),
        kind=str(entry.get("LayerType", "")),
        inputs=tuple(str(tensor["Name"]) for tensor in entry.get("Inputs", ())),
        outputs=tuple(str(tensor["Name"]) for tensor in entry.get("Outputs", ())),
    )
