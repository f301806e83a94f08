"""Export a trained MyNet for deployment.

python export.py --pretrained=output/to_static --save-inference-dir=output/exported

Writes model.json and model.pdiparams; with FLAGS_enable_pir_api=0 in the environment the older
model.pdmodel instead of the first.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import paddle
from retrieval import model, stages
from retrieval.problems import ProblemError, run


def main() -> None:
    """Load the weights, show the network, save its program."""
    parser = argparse.ArgumentParser(description="Export a trained MyNet.")
    add = parser.add_argument
    add(
        "--pretrained", type=Path, default=Path("output/to_static"), help="weights, or their folder"
    )
    add("--save-inference-dir", type=Path, default=Path("output/exported"))
    args = parser.parse_args()

    folder: Path = args.save_inference_dir
    if folder.exists() and not folder.is_dir():
        raise ProblemError(f"--save-inference-dir {folder} is a file, not a folder")
    paddle.set_device("cpu")
    net = model.load(args.pretrained, to_static=True)
    model.summary(net)
    print(f"exported {stages.export(net, folder)}")


if __name__ == "__main__":
    run(main)
