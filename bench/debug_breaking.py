"""Breaks one op of an exported model, in a copy: the known truth for the benchmark of debug.

Faults are made in the files, not in layers, so that they hit every kind of export the same way and
nothing else in the copy changes.
"""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.exports.parameters import read_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[Any]

_SPARE = {
    "relu": "silu",
    "hardswish": "silu",
    "hard_swish": "swish",
    "hardsigmoid": "sigmoid",
    "hard_sigmoid": "sigmoid",
    "sigmoid": "tanh",
    "gelu": "relu",
    "silu": "relu",
    "swish": "relu",
    "tanh": "sigmoid",
}
"""What an activation is replaced by: another that is as easily mistaken for it."""
_NORMS = ("batch_norm_", "batch_norm", "layer_norm")
_EPSILON_FACTOR = 50.0
"""Enough to show; Paddle refuses a layer norm with an epsilon above 0.001."""
_MATRIX = 2
_ENOUGH = 4
"""A weight with fewer elements is no layer's."""


@dataclass(frozen=True)
class Fault:
    """One way of breaking one op.

    Attributes:
        kind: what is done.
        place: position of the op in the text of the program.
        op_type: its type.
        parameter: the parameter that is changed; empty where the op itself is.
    """

    kind: str
    place: int
    op_type: str
    parameter: str = ""


def _three_bits(weight: Array) -> Array:
    step = np.abs(weight).max() / 3 or np.float32(1)
    return np.asarray(np.clip(np.round(weight / step), -4, 3) * step, weight.dtype)


def _with_nan(weight: Array) -> Array:
    broken = weight.copy()
    # The first axis of a convolution is that of the channels it makes, of a product the last.
    broken[(0,) if weight.ndim > _MATRIX else (..., 0)] = np.nan
    return broken


KINDS: dict[str, Callable[[Array], Array]] = {
    "scaled by 1.01": lambda weight: weight * np.float32(1.01),
    "transposed": lambda weight: np.ascontiguousarray(weight.swapaxes(-1, -2)).reshape(
        weight.shape
    ),
    "zeroed": np.zeros_like,
    "3 bits": _three_bits,
    "bias dropped": np.zeros_like,
    "NaN in a channel": _with_nan,
}
OP_KINDS = ("epsilon", "activation")


def possible(model: Path) -> list[Fault]:
    """Return every fault of a model that changes anything."""
    exported = _Exported(model)
    values = exported.parameters()
    found = []
    live = exported.live()
    for place, kind, parameters in exported.ops():
        if place not in live:
            continue
        short = kind.rpartition(".")[2]
        if short in _SPARE:
            found.append(Fault("activation", place, short))
        if short in _NORMS:
            found.append(Fault("epsilon", place, short))
        for name in parameters:
            found += [
                Fault(what, place, short, name)
                for what in _fitting(name, values[name])
                if not _same(KINDS[what](values[name]), values[name])
            ]
    return found


def _fitting(name: str, weight: Array) -> tuple[str, ...]:
    if weight.dtype != np.float32 or weight.size < _ENOUGH:
        return ()
    if weight.ndim == 1:
        return ("bias dropped",) if ".b_" in name else ()
    return ("scaled by 1.01", "transposed", "zeroed", "3 bits", "NaN in a channel")


def _as_list(outputs: Any) -> list[Any]:
    return outputs if isinstance(outputs, list) else [outputs]


def _same(one: Array, other: Array) -> bool:
    return bool(np.array_equal(one, other, equal_nan=True))


def draw(faults: list[Fault], count: int, seed: int) -> list[Fault]:
    """Draw faults so that every kind comes about equally often."""
    dice = random.Random(seed)  # noqa: S311 - a draw, not a secret
    by_kind: dict[str, list[Fault]] = {}
    for fault in faults:
        by_kind.setdefault(fault.kind, []).append(fault)
    for group in by_kind.values():
        dice.shuffle(group)
    drawn: list[Fault] = []
    while len(drawn) < count and any(by_kind.values()):
        for group in by_kind.values():
            if group and len(drawn) < count:
                drawn.append(group.pop())
    return drawn


def break_model(model: Path, fault: Fault, folder: Path) -> Path:
    """Write a copy of a model with one fault; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / model.name
    shutil.copyfile(model, copy)
    params = copy.with_suffix(".pdiparams")
    shutil.copyfile(model.with_suffix(".pdiparams"), params)
    exported = _Exported(copy)
    if fault.parameter:
        _overwrite(params, exported, fault)
    else:
        exported.change(fault)
    return copy


def _overwrite(params: Path, exported: _Exported, fault: Fault) -> None:
    view = exported.parameters()[fault.parameter]
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    broken = KINDS[fault.kind](np.array(view)).astype(view.dtype)
    with params.open("r+b") as file:
        file.seek(offset)
        file.write(broken.tobytes())


class _Exported:
    """Both formats of an export, as far as breaking needs them."""

    def __init__(self, model: Path) -> None:
        self._model = model
        self._older = model.suffix == ".pdmodel"
        if self._older:
            from paddle.base.proto import framework_pb2  # noqa: PLC0415

            self._program = framework_pb2.ProgramDesc()
            self._program.ParseFromString(model.read_bytes())
            return
        self._text = json.loads(model.read_text())
        self._block = self._text["program"]["regions"][0]["blocks"][0]["ops"]

    def parameters(self) -> dict[str, Array]:
        if self._older:
            block = self._program.blocks[0]
            names = [var.name for var in block.vars if var.persistable and var.type.type < 9]
        else:
            names = [op["A"][3] for op in self._block if op["#"] == "p" and op["OA"][0]]
        return read_parameters(self._model.with_suffix(".pdiparams"), names)

    def ops(self) -> Iterator[tuple[int, str, list[str]]]:
        """Yield place, type and parameters of every op."""
        if self._older:
            names = self.parameters()
            for place, op in enumerate(self._program.blocks[0].ops):
                taken = [name for slot in op.inputs for name in slot.arguments]
                yield place, op.type, [name for name in taken if name in names]
            return
        own: dict[int, list[str]] = {}
        for place, op in enumerate(self._block):
            if op["#"] == "p":
                own[op["O"]["%"]] = [op["A"][3]] if op["OA"][0] else []
                continue
            taken = [name for item in op["I"] for name in own.get(item["%"], [])]
            if op["#"] in ("0.combine", "1.reshape"):
                own[op["O"][0]["%"]] = taken
            else:
                yield place, op["#"], taken

    def live(self) -> set[int]:
        """Return the places of the ops that an output depends on: nobody sees what others do."""
        if self._older:
            ops = [
                (
                    {name for slot in op.outputs for name in slot.arguments},
                    {name for slot in op.inputs for name in slot.arguments},
                    op.type == "fetch",
                )
                for op in self._program.blocks[0].ops
            ]
        else:
            ops = [
                (
                    {item["%"] for item in _as_list(op["O"])},
                    {item["%"] for item in op.get("I", [])},
                    op["#"].endswith(".fetch"),
                )
                for op in self._block
            ]
        wanted: set[Any] = set()
        found = set()
        for place in reversed(range(len(ops))):
            gives, takes, is_end = ops[place]
            if is_end or gives & wanted:
                found.add(place)
                wanted |= takes
        return found

    def change(self, fault: Fault) -> None:
        """Change the op itself, and write the program."""
        if self._older:
            self._change_older(fault)
            return
        op = self._block[fault.place]
        if fault.kind == "epsilon":
            for item in op["A"]:
                if item["N"] == "epsilon":
                    item["AT"]["D"] *= _EPSILON_FACTOR
        else:
            op["#"] = f"1.{_SPARE[fault.op_type]}"
            op["A"] = [item for item in op["A"] if item["N"] == "struct_name"]
        self._model.write_text(json.dumps(self._text))

    def _change_older(self, fault: Fault) -> None:
        op = self._program.blocks[0].ops[fault.place]
        if fault.kind == "epsilon":
            for item in op.attrs:
                if item.name == "epsilon":
                    item.f *= _EPSILON_FACTOR
        else:
            op.type = _SPARE[fault.op_type]
            own = {"slope", "offset", "threshold", "scale", "approximate", "beta"}
            kept = [item for item in op.attrs if item.name not in own]
            del op.attrs[:]
            op.attrs.extend(kept)
        self._model.write_bytes(self._program.SerializeToString())
