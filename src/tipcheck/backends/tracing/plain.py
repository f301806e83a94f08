"""Runs a model as users do: memory reuse on, nothing watched, nothing printed.

A predictor that is watched cannot reuse memory, and one that prints its passes fails to; so this
takes a process of its own.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from tipcheck.backends.isolation import run_worker
from tipcheck.backends.tracing.run_modes import ModeSettings, environment
from tipcheck.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from tipcheck.backends.tracing.execution import Execution

    Array = npt.NDArray[Any]


class UnsupportedError(ToolError):
    """This Paddle makes no predictor that reuses memory for this model."""


def run_plain(
    execution: Execution, inputs: Path, folder: Path, *, time_limit: float = 3600.0
) -> dict[str, Array]:
    """Return the final outputs by name, computed with memory reuse on.

    Raises:
        UnsupportedError: Paddle makes no such predictor; 3.3.1 does not for any ``.json``.
        ToolError: it does, and that does not run.
    """
    import numpy as np

    settings = replace(execution.settings or ModeSettings(), memory_reuse=True)
    archive = folder / "plain.npz"
    request = {
        "model": str(execution.model.resolve()),
        "run_mode": execution.run_mode,
        "settings": asdict(settings),
        "inputs": str(inputs.resolve()),
        "archive": str(archive),
    }
    env = environment(execution.run_mode)
    end = run_worker(
        "tipcheck.backends.tracing.plain_worker", request, time_limit=time_limit, env=env
    )
    refused = end.messages[-1].get("refused", "") if end.messages else ""
    if refused:
        raise UnsupportedError(refused, where=execution.run_mode)
    if end.died or not end.messages:
        how = end.died or "ended without an answer"
        raise ToolError(f"the process that ran it {how}", where=execution.run_mode)
    with np.load(archive, allow_pickle=False) as arrays:
        return {name: arrays[str(at)] for at, name in enumerate(end.messages[-1]["outputs"])}
