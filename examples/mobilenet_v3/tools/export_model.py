"""Export a trained MobileNetV3 for Paddle Inference.

    python tools/export_model.py --pretrained=./output/latest.pdparams \
        --save-inference-dir=./output/mobilenet_v3_small_infer/

Writes inference.json and inference.pdiparams; with FLAGS_enable_pir_api=0 in the environment the
older inference.pdmodel instead of the first. Whether the training was quantised is seen from the
checkpoint: of a quantised one the quantised program is written, after every stage of Paddle
Inference has given the answers that the network gives.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import paddle

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mobilenet.data import PHOTO_SIZE
from mobilenet.exporting import export_network
from mobilenet.model import MODELS, load
from mobilenet.notes import read_notes
from mobilenet.problems import at_least, run


def main() -> None:
    """Load the weights, save the program."""
    parser = argparse.ArgumentParser(description="Export a trained MobileNetV3.")
    add = parser.add_argument
    add("--model", choices=sorted(MODELS), default="mobilenet_v3_small")
    add("--pretrained", type=Path, required=True, help="the trained weights, a .pdparams file")
    add("--save-inference-dir", type=Path, default=Path("./output/mobilenet_v3_small_infer"))
    add("--img-size", type=at_least(32), help="pixels; default: those of the training, or 64")
    args = parser.parse_args()

    notes = read_notes(args.pretrained)
    size = args.img_size or (notes.img_size if notes else PHOTO_SIZE)
    paddle.set_device("cpu")
    net = load(args.model, args.pretrained)
    export_network(net, args.save_inference_dir, args.model, size, notes)


if __name__ == "__main__":
    run(main)
