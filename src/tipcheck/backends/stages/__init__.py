"""How each stage of the catalogue runs: one module per stage, which registers itself.

A module of this folder calls ``register`` when it is imported; ``stage_kinds`` imports all of them.
They import frameworks only inside the functions that workers call, so that the list of stages costs
nothing and runs nowhere else.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tipcheck.backends.catalogue import STAGES


class UnusedError(RuntimeError):
    """A build of Paddle accepted what a stage asks for, and does not do it; or cannot here."""


class Runner(Protocol):
    """A model that is ready to run in one way."""

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        """Return the outputs for one set of inputs, as arrays, in the model's order."""

    def clone(self) -> Runner:
        """Return a second runner that shares the weights, or raise NotImplementedError."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a stage is given to start from.

    Attributes:
        model: the exported file; None where there is only a source.
        source: ``module:factory`` of the layer; empty without one.
        path: folders to find that module in.
        inputs: the inputs as ``subject.InputSpec`` in plain dicts, for layers that need them.
        folder: where the stage may leave files.
        threads: how many it may use.
        extra: whatever else the request says.
    """

    model: Path | None
    source: str
    path: tuple[str, ...]
    inputs: tuple[Mapping[str, Any], ...]
    folder: Path
    threads: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)

    def exported(self) -> Path:
        """Return the exported file."""
        if self.model is None:
            raise UnusedError("there is no exported model")
        return self.model


@dataclass(frozen=True, slots=True)
class StageKind:
    """One way of running, as the ladder sees it.

    Attributes:
        name: as in the catalogue.
        start: loads the model in a worker, and returns what runs it.
        precision: the number format it computes in, a row of the noise budgets.
        from_layer: whether it runs the layer itself and not the export.
        inference: whether users deploy this way; such stages go through the state-and-shape suite.
        onto: the stage that it is one change away from, when that is not the rung below.
        packs: whether it keeps a copy of the weights for each shape of inputs that it has met.
    """

    name: str
    start: Callable[[Place], Runner]
    precision: str = "float32"
    from_layer: bool = False
    inference: bool = False
    onto: str = ""
    packs: bool = False


_KINDS: dict[str, StageKind] = {}


def register(kind: StageKind) -> None:
    """Make a stage known; its name has to be in the catalogue.

    Raises:
        ValueError: the catalogue has no such stage, or it is registered already.
    """
    if kind.name not in {way.name for way in STAGES}:
        raise ValueError(f"the catalogue has no stage {kind.name!r}")
    if kind.name in _KINDS:
        raise ValueError(f"two modules register the stage {kind.name!r}")
    _KINDS[kind.name] = kind


def stage_kinds() -> Mapping[str, StageKind]:
    """Return every registered stage, in the order of the catalogue."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return {way.name: _KINDS[way.name] for way in STAGES if way.name in _KINDS}
