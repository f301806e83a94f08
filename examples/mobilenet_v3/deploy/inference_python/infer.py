"""Classify an image, or all images of a folder, with Paddle Inference.

python deploy/inference_python/infer.py --model-dir=./output/mobilenet_v3_small_infer/ \
    --img-path=./images/demo.jpg
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import inference

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from deploy.inference_python.autolog import Ran, Times, report
from mobilenet.images import find_images, preprocess, read_image
from mobilenet.problems import ProblemError, at_least, boolean, run


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Classify images with Paddle Inference.")
    add = parser.add_argument
    add("--model-dir", type=Path, default=Path("./output/mobilenet_v3_small_infer"))
    add("--img-path", type=Path, default=Path("./images/demo.jpg"), help="an image or a folder")
    add("--use-gpu", type=boolean, default=False, metavar="True|False")
    add("--batch-size", type=at_least(1), default=1)
    add("--benchmark", type=boolean, default=False, metavar="True|False", help="report times")
    args = parser.parse_args()
    if args.use_gpu and not paddle.is_compiled_with_cuda():
        parser.error("--use-gpu=True, but this PaddlePaddle is a CPU build: it would use the CPU")
    if args.use_gpu and paddle.device.cuda.device_count() == 0:
        parser.error("--use-gpu=True, but this machine has no GPU that PaddlePaddle sees")
    return args


def make_config(folder: Path, *, use_gpu: bool, quantised: bool) -> tuple[Any, str]:
    """Configure a predictor for either format of export; return its precision with it.

    A quantised model in the older format runs in int8 on a CPU. In the newer one it computes the
    same whole numbers in float32: PaddlePaddle 3.3 has no int8 passes for that format.

    Raises:
        ProblemError: there is no exported model in the folder.
    """
    if not folder.is_dir():
        raise ProblemError(f"the model folder {folder} does not exist")
    programs = [folder / "inference.json", folder / "inference.pdmodel"]
    program = next((path for path in programs if path.is_file()), None)
    weights = folder / "inference.pdiparams"
    if program is None or not weights.is_file():
        raise ProblemError(
            f"{folder} holds no exported model: expected inference.json (or inference.pdmodel) "
            "and inference.pdiparams, as tools/export_model.py writes them"
        )
    config = inference.Config(str(program), str(weights))
    if use_gpu:
        config.enable_use_gpu(256, 0)
    else:
        config.disable_gpu()
        config.set_cpu_math_library_num_threads(2)
    config.disable_glog_info()
    if quantised and not use_gpu and program.suffix == ".pdmodel":
        config.enable_mkldnn()
        config.enable_mkldnn_int8()
        return config, "int8"
    return config, "fp32"


def make_predictor(config: Any, folder: Path) -> Any:
    """Load the model.

    Raises:
        ProblemError: the files are damaged.
    """
    try:
        return inference.create_predictor(config)
    except Exception as error:  # noqa: BLE001 (Paddle's own errors share no better base)
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise ProblemError(f"the model in {folder} cannot be loaded: {reason}") from None


def main() -> None:
    """Classify, print a line per image, report the times."""
    args = read_arguments()
    described = read_description(args.model_dir)
    size, labels = int(described.get("img_size", 224)), described.get("labels", [])
    quantised = bool(described.get("quantised"))
    config, precision = make_config(args.model_dir, use_gpu=args.use_gpu, quantised=quantised)
    files = find_images(args.img_path)
    predictor = make_predictor(config, args.model_dir)
    source = predictor.get_input_handle(predictor.get_input_names()[0])
    result = predictor.get_output_handle(predictor.get_output_names()[0])

    times = Times()
    for start in range(0, len(files), args.batch_size):
        batch = files[start : start + args.batch_size]
        began = time.perf_counter()
        pixels = np.stack([preprocess(read_image(file), size) for file in batch])
        prepared = time.perf_counter()
        source.copy_from_cpu(pixels)
        predictor.run()
        logits = result.copy_to_cpu().astype(np.float64)
        inferred = time.perf_counter()
        scores = np.exp(logits - logits.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        for file, score in zip(batch, scores, strict=True):
            best = int(score.argmax())
            name = f", label: {labels[best]}" if best < len(labels) else ""
            print(f"image: {file}, class_id: {best}, prob: {score[best]:.5f}{name}")
        times.add(prepared - began, inferred - prepared, time.perf_counter() - inferred, len(batch))
    if args.benchmark:
        model = str(described.get("model_name", "mobilenet_v3_small"))
        report(config, times, Ran(model, precision, args.batch_size, f"3,{size},{size}"))


def read_description(folder: Path) -> dict[str, Any]:
    """Read what the exporter noted beside the model, if it did."""
    path = folder / "inference_config.json"
    if not path.is_file():
        return {}
    try:
        described = json.loads(path.read_text())
    except ValueError as error:
        raise ProblemError(f"{path} is not JSON: {error}") from None
    return described if isinstance(described, dict) else {}


if __name__ == "__main__":
    run(main)
