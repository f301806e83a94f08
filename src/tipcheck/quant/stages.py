"""Runs an exported model in several ways, in a process of its own: ``python -m`` this module.

Reads ``request.npz`` in the folder it is given, writes ``STAGE.npz`` for every stage. What Paddle
prints goes to standard output, which the caller keeps.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

STAGES = ("plain", "passes", "onednn", "onednn_int8")
MARK = "tipcheck.quant stage:"


def predictor(model: str, weights: str, stage: str) -> Any:
    """Return a Paddle Inference predictor for a stage."""
    from paddle import inference  # noqa: PLC0415 - only in the worker

    config = inference.Config(model, weights)
    config.switch_ir_optim(stage != "plain")
    if stage in {"plain", "passes"}:
        config.disable_mkldnn()
    else:
        config.enable_mkldnn()
    if stage == "onednn_int8":
        config.enable_mkldnn_int8()
    return inference.create_predictor(config)


def run(made: Any, inputs: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Run a predictor once."""
    for name, value in zip(made.get_input_names(), inputs, strict=True):
        made.get_input_handle(name).copy_from_cpu(np.ascontiguousarray(value))
    made.run()
    return [made.get_output_handle(name).copy_to_cpu() for name in made.get_output_names()]


def main() -> None:
    """Do what the request says."""
    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    with np.load(folder / "inputs.npz") as file:
        inputs = [file[name] for name in file.files]
    for stage in request["stages"]:
        print(f"\n{MARK} {stage}", flush=True)
        outputs = run(predictor(request["model"], request["weights"], stage), inputs)
        np.savez(folder / f"{stage}.npz", *outputs)
    print(f"\n{MARK} done", flush=True)


if __name__ == "__main__":
    main()
