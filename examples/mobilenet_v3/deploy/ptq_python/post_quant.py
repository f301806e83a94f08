"""Quantise a trained MobileNetV3 after its training, with a few images and without a gradient.

    python deploy/ptq_python/post_quant.py --model_path=./output/latest.pdparams --batch_num=2

The images show each layer what values it gets; --algo chooses where to clip them: KL loses least by
relative entropy, abs_max clips nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import paddle

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mobilenet.data import Samples, usual_size
from mobilenet.exporting import export_network
from mobilenet.model import MODELS, load
from mobilenet.notes import read_notes
from mobilenet.problems import ProblemError, at_least, boolean, run
from mobilenet.quantised import calibrate, is_quantised, quantised

METHODS = {"KL": "kl", "abs_max": "abs_max"}


def main() -> None:
    """Load, quantise, calibrate, export."""
    parser = argparse.ArgumentParser(description="Quantise a trained MobileNetV3.")
    add = parser.add_argument
    add("--model", choices=sorted(MODELS), default="mobilenet_v3_small")
    add("--model_path", type=Path, required=True, help="the trained weights, a .pdparams file")
    add("--data_dir", type=Path, default=Path("./lite_data"), help="images to calibrate with")
    add("--output_dir", type=Path, default=Path("./output/mobilenet_v3_small_ptq_infer"))
    add("--batch_num", type=at_least(1), default=2, help="batches to calibrate with")
    add("--batch_size", type=at_least(1), default=7)
    add("--algo", choices=sorted(METHODS), default="KL")
    add("--use_gpu", type=boolean, default=False, metavar="True|False")
    args = parser.parse_args()
    if args.use_gpu and not paddle.is_compiled_with_cuda():
        parser.error("--use_gpu=True, but this PaddlePaddle is a CPU build: it would use the CPU")

    paddle.set_device("gpu" if args.use_gpu else "cpu")
    notes = read_notes(args.model_path)
    size = notes.img_size if notes else usual_size(args.data_dir)
    net = load(args.model, args.model_path)
    if is_quantised(net.state_dict()):
        raise ProblemError(f"{args.model_path} is quantised already: export it as it is")
    samples = Samples(args.data_dir, "train", size=size)
    wanted = args.batch_num * args.batch_size
    if wanted > len(samples):
        raise ProblemError(f"{args.data_dir} has {len(samples)} images, {wanted} are asked for")
    # From all over the data set, which is sorted by class.
    chosen = np.linspace(0, len(samples) - 1, wanted).round().astype(int).tolist()
    batches = [chosen[start :: args.batch_num] for start in range(args.batch_num)]
    net = quantised(net)
    count = calibrate(net, [samples.batch(batch)[0] for batch in batches], METHODS[args.algo])
    print(f"calibrated {count} layers with {wanted} images ({args.algo})")
    export_network(net, args.output_dir, args.model, size, notes)


if __name__ == "__main__":
    run(main)
