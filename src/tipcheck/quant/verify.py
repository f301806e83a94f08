"""Proves that a saved model computes what the quantised model computes, on every stage.

A wrong int8 model looks like a right one until somebody measures it. So nothing is handed out that
was not run by Paddle Inference, in a fresh process, and compared.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.errors import EXIT_CHECK_FAILED, TipcheckError, ToolError
from tipcheck.quant.stages import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

TOLERANCE = 1e-4
# A float that an engine computes differently in its last bit can round to the next whole number.
# That moves an output a little; a wrong scale moves all of them a lot.
ROUNDING = 2e-2
_TIME_LIMIT = 600.0
_INT8_OPS = re.compile(
    r"quantized (\d+) (?:fused_conv2d|conv2d|depthwise_conv2d|fc|matmul)\w* ops\b"
)


class WrongExportError(TipcheckError):
    """A saved model does not compute what the quantised model computes."""

    exit_code = EXIT_CHECK_FAILED


@dataclass(frozen=True, slots=True)
class StageCheck:
    """What one stage gave.

    Attributes:
        stage: its name.
        difference: the largest difference of an output value.
        relative: size of the difference in relation to that of the outputs (both as L2 norms).
        int8_ops: how many ops ran in int8, as the engine reports it.
    """

    stage: str
    difference: float
    relative: float
    int8_ops: int


def check(
    model: Path,
    weights: Path,
    stages: Sequence[str],
    inputs: Sequence[np.ndarray[Any, Any]],
    expected: Sequence[np.ndarray[Any, Any]],
) -> tuple[StageCheck, ...]:
    """Run a saved model on every stage and compare its outputs.

    Raises:
        WrongExportError: a stage gives something else, or crashes.
        ToolError: the worker could not be run.
    """
    with tempfile.TemporaryDirectory(prefix="tipcheck-quant-") as name:
        folder = Path(name)
        request = {"model": str(model), "weights": str(weights), "stages": list(stages)}
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        np.savez(folder / "inputs.npz", *inputs)
        said = _run_worker(folder)
        return tuple(_check_stage(stage, folder, expected, said) for stage in stages)


def _run_worker(folder: Path) -> dict[str, str]:
    command = [sys.executable, "-m", "tipcheck.quant.stages", str(folder)]
    places = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}
    try:
        ended = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIME_LIMIT,
            env=env,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(
            f"checking the saved model took more than {_TIME_LIMIT:.0f} s",
            hint="give save() fewer or smaller sample inputs",
        ) from error
    parts = ended.stdout.decode(errors="replace").split(MARK)[1:]
    said = {part.split()[0]: part for part in parts}
    if "done" not in said:
        last = parts[-1].split() if parts else []
        reason = _last_words(ended.stdout.decode(errors="replace"))
        raise WrongExportError(
            f"Paddle Inference could not run the saved model: {reason}",
            where=f"stage {last[0]}" if last else "",
            hint="nothing was saved; save in the other format, or leave the op out of the model",
        )
    return said


def _last_words(text: str) -> str:
    errors = [line.strip() for line in text.splitlines() if re.search(r"Error|SIG[A-Z]+", line)]
    return errors[-1][:300] if errors else "its process died"


def _check_stage(
    stage: str, folder: Path, expected: Sequence[np.ndarray[Any, Any]], said: dict[str, str]
) -> StageCheck:
    with np.load(folder / f"{stage}.npz") as file:
        outputs = [file[name] for name in file.files]
    shapes = [list(output.shape) for output in outputs]
    wanted = [list(output.shape) for output in expected]
    if shapes != wanted:
        raise WrongExportError(
            f"outputs of shapes {shapes} instead of {wanted}",
            where=f"stage {stage}",
            hint="nothing was saved",
        )
    difference = relative = 0.0
    for output, right in zip(outputs, expected, strict=True):
        gap = output.astype("float64") - right.astype("float64")
        if not np.isfinite(gap).all():
            difference = relative = float("inf")
            break
        difference = max(difference, float(np.abs(gap).max(initial=0.0)))
        size = max(float(np.linalg.norm(right)), 1e-12)
        relative = max(relative, float(np.linalg.norm(gap)) / size)
    if difference > TOLERANCE and relative > ROUNDING:
        raise WrongExportError(
            f"outputs are off by up to {difference:.3g} ({100 * relative:.2g} % of their size)",
            where=f"stage {stage}",
            hint="nothing was saved: this model cannot be exported right in this format",
        )
    int8_ops = sum(int(count) for count in _INT8_OPS.findall(said[stage]))
    return StageCheck(stage, difference, relative, int8_ops)
