"""Writes a quantised model so that it is right on every stage, or not at all."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle
from paddle.pir_utils import IrGuard, OldIrGuard

from tipcheck.errors import TipcheckError, UsageError
from tipcheck.quant.deploy import convert, quantised_layers
from tipcheck.quant.eager import eager
from tipcheck.quant.stages import STAGES
from tipcheck.quant.verify import StageCheck, WrongExportError, check

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

FORMATS = {"json": ".json", "pdmodel": ".pdmodel"}
# Paddle 3.3 has no int8 passes for the newer programs: a .json is not run in int8 by anything.
_STAGES = {"json": STAGES[:3], "pdmodel": STAGES}
_UNKNOWN_SIZE = 2


@dataclass(frozen=True, slots=True)
class Saved:
    """A model that was saved, and what was seen of it.

    Attributes:
        model: the file of the program; the weights lie beside it.
        quantised_ops: how many convolutions and linear layers compute with whole numbers.
        int8_ops: how many of them oneDNN runs in int8.
        checks: what every stage gave.
    """

    model: Path
    quantised_ops: int
    int8_ops: int
    checks: tuple[StageCheck, ...]


def save(
    model: Any,
    path: str | os.PathLike[str],
    input_spec: Sequence[Any],
    *,
    inputs: Sequence[Any] | None = None,
    format: str | None = None,  # noqa: A002 - what it is
) -> Saved:
    """Export a quantised model, and check it on every stage before it is handed out.

    Prints a line with the number of quantised ops, and one for every stage.

    Args:
        model: a quantised model; neither changed nor left in another mode.
        path: where to write, without an ending, as for ``paddle.jit.save``.
        input_spec: one ``InputSpec``, tensor or array for each input.
        inputs: sample inputs for the check; real ones show more. By default the tensors and arrays
            of ``input_spec``, or random numbers.
        format: ``json`` or ``pdmodel``; by default what ``paddle.jit.save`` would write here. Only
            a ``.pdmodel`` can be run in int8.

    Raises:
        UsageError: it is not a quantised model, or the arguments do not fit.
        WrongExportError: a stage gives other results; nothing was written then.
    """
    chosen = format or ("json" if paddle.framework.use_pir_api() else "pdmodel")
    if chosen not in FORMATS:
        raise UsageError(f"no format {chosen!r}", hint=f"choose from {', '.join(FORMATS)}")
    specs = [_as_spec(item) for item in input_spec]
    samples = _samples(input_spec if inputs is None else inputs)
    if len(samples) != len(specs):
        raise UsageError(
            f"{len(samples)} sample inputs for {len(specs)} inputs", hint="give one for each"
        )
    target = Path(path)
    with tempfile.TemporaryDirectory(prefix="tipcheck-quant-") as name:
        staged = Path(name) / target.name
        expected = _answers(model, samples)
        exported = convert(model)
        _write(exported, staged, specs, chosen)
        program = staged.with_name(staged.name + FORMATS[chosen])
        weights = staged.with_name(staged.name + ".pdiparams")
        checks = check(program, weights, _STAGES[chosen], samples, expected)
        target.parent.mkdir(parents=True, exist_ok=True)
        for file in sorted(Path(name).iterdir()):
            shutil.move(str(file), target.parent / file.name)
    count = len(quantised_layers(exported))
    saved = Saved(
        target.with_name(target.name + FORMATS[chosen]),
        count,
        max(item.int8_ops for item in checks),
        checks,
    )
    _say(saved, chosen)
    return saved


def _write(exported: Any, staged: Path, specs: list[Any], chosen: str) -> None:
    try:
        with _graphs_of(chosen):
            paddle.jit.save(exported, str(staged), input_spec=specs)
    except TipcheckError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        other = "json" if chosen == "pdmodel" else "pdmodel"
        raise WrongExportError(
            f"the model cannot be written as a {FORMATS[chosen]}: {lines[-1] if lines else error}",
            hint=f'nothing was saved; try format="{other}"',
        ) from error


def _say(saved: Saved, chosen: str) -> None:
    lines = [f"[quant] quantised ops: {saved.quantised_ops}"]
    lines += [
        f"[quant] {item.stage}: largest difference {item.difference:.3g}"
        + (f", {item.int8_ops} ops in int8" if item.stage == "onednn_int8" else "")
        for item in saved.checks
    ]
    if chosen == "json":
        lines.append('[quant] onednn_int8: not with a .json; save with format="pdmodel" for it')
    print("\n".join(lines), flush=True)  # noqa: T201 - said where the export's log is read


def _graphs_of(chosen: str) -> contextlib.AbstractContextManager[Any]:
    newer = bool(paddle.framework.use_pir_api())
    if newer == (chosen == "json"):
        return contextlib.nullcontext()
    guard: contextlib.AbstractContextManager[Any] = IrGuard() if chosen == "json" else OldIrGuard()
    return guard


def _answers(model: Any, samples: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    training = model.training
    model.eval()
    try:
        with eager():
            outputs = model(*[paddle.to_tensor(sample) for sample in samples])
    finally:
        if training:
            model.train()
    return [output.numpy() for output in paddle.utils.flatten(outputs)]


def _as_spec(item: Any) -> Any:
    if isinstance(item, paddle.static.InputSpec):
        return item
    array = np.asarray(item)
    return paddle.static.InputSpec(list(array.shape), str(array.dtype))


def _samples(items: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    made: list[np.ndarray[Any, Any]] = []
    for item in items:
        if not isinstance(item, paddle.static.InputSpec):
            made.append(np.asarray(item))
            continue
        shape = [_UNKNOWN_SIZE if size is None or size < 0 else size for size in item.shape]
        kind = str(item.dtype).rpartition(".")[2].lower()
        values = random.normal(size=shape) if "float" in kind else np.zeros(shape)
        made.append(values.astype(kind))
    return made
