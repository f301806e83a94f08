"""Writes a network as a model for Paddle Inference, with a description for who runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from mobilenet.drawing import KINDS, draw
from mobilenet.notes import Notes
from mobilenet.problems import ProblemError
from mobilenet.quantised import export, is_quantised

NAME = "inference"
PROGRAMS = (f"{NAME}.json", f"{NAME}.pdmodel")


def export_network(net: Any, folder: Path, model: str, size: int, notes: Notes | None) -> None:
    """Export a network; one with quanters in it as the quantised program that it computes.

    Raises:
        ProblemError: it cannot be exported.
    """
    if folder.exists() and not folder.is_dir():
        raise ProblemError(f"--save-inference-dir {folder} is a file")
    folder.mkdir(parents=True, exist_ok=True)
    for left_over in (*PROGRAMS, f"{NAME}.pdiparams", f"{NAME}.pdiparams.info"):
        (folder / left_over).unlink(missing_ok=True)
    net.eval()
    spec = paddle.static.InputSpec([None, 3, size, size], "float32", "image")
    said = ""
    if is_quantised(net.state_dict()):
        count = export(net, folder / NAME, spec, sample_images(size))
        said = f", {count} ops are quantised"
    else:
        paddle.jit.save(net, str(folder / NAME), input_spec=[spec])
    described = {
        "model_name": model,
        "img_size": size,
        "quantised": bool(said),
        "labels": notes.labels if notes else [],
    }
    (folder / f"{NAME}_config.json").write_text(json.dumps(described, indent=1) + "\n")
    written = [name for name in PROGRAMS if (folder / name).exists()]
    if not written or not (folder / f"{NAME}.pdiparams").exists():
        raise ProblemError(f"Paddle saved no model in {folder}")
    print(f"exported {model} to {folder / written[0]}{said}")


def sample_images(size: int) -> Any:
    """Return a batch of patterns in the range of normalised images."""
    random = np.random.default_rng(1)
    drawn = [2 * draw(kind, size, random) for kind in range(len(KINDS))]
    return np.stack([np.stack([image] * 3) for image in drawn]).astype(np.float32)
