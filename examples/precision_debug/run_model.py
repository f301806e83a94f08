"""Run one exported model in one way, and keep its outputs.

    python run_model.py models/ocr_rec/json --mode=onednn_fp32 --save=out/ocr_rec_onednn.npz

A process runs one mode only: some ways change what later ones in the same process answer.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from paddle import inference

sys.path.insert(0, str(Path(__file__).resolve().parent))

from precision.problems import ProblemError, run
from precision.wheel import find_wheel, read_characters

MODES = ("baseline", "ir", "onednn_fp32", "onednn_bf16")
Arrays = dict[str, npt.NDArray[Any]]


def main() -> None:
    """Run the model and save what comes out."""
    parser = argparse.ArgumentParser(description="Run an exported model and keep its outputs.")
    add = parser.add_argument
    add("model", type=Path, help="folder with inference.json or inference.pdmodel")
    add("--inputs", type=Path, help="an .npz file; default: inputs.npz in the folder above")
    add("--mode", choices=MODES, default="baseline", help="baseline: float32, no optimisation")
    add("--save", type=Path, required=True, help="the .npz file for the outputs")
    add("--read", action="store_true", help="print the text that the recogniser has read")
    add("--downloads", type=Path, default=Path("./downloads"), help="where the wheel is kept")
    args = parser.parse_args()

    config = configure(args.model, args.mode)
    inputs = read_inputs(args.inputs or args.model.parent / "inputs.npz")
    started = time.perf_counter()
    outputs = answer(config, inputs, args.model)
    seconds = time.perf_counter() - started
    args.save.parent.mkdir(parents=True, exist_ok=True)
    np.savez(args.save, **outputs)
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in outputs.items())
    print(f"{args.model} {args.mode}: {shapes}, {1000 * seconds:.0f} ms, written to {args.save}")
    if args.read:
        characters = read_characters(find_wheel(args.downloads, offline=True))
        for line in read_text(next(iter(outputs.values())), characters):
            print(f"{args.model} {args.mode} reads: {line}")


def configure(folder: Path, mode: str) -> Any:
    """Return the configuration of one way to run the model.

    Raises:
        ProblemError: there is no exported model.
    """
    programs = [folder / "inference.json", folder / "inference.pdmodel"]
    program = next((path for path in programs if path.is_file()), None)
    weights = folder / "inference.pdiparams"
    if program is None or not weights.is_file():
        raise ProblemError(f"{folder} holds no exported model: python prepare.py makes some")
    config = inference.Config(str(program), str(weights))
    config.disable_glog_info()
    config.disable_gpu()
    config.set_cpu_math_library_num_threads(2)
    if mode in {"baseline", "ir"}:
        config.disable_mkldnn()
    else:
        config.enable_mkldnn()
    config.switch_ir_optim(mode != "baseline")
    if mode == "onednn_bf16":
        config.enable_mkldnn_bfloat16()
    return config


def read_inputs(path: Path) -> Arrays:
    """Read the arrays of an .npz file.

    Raises:
        ProblemError: it is no such file.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive}
    except FileNotFoundError:
        raise ProblemError(f"the inputs {path} do not exist: see --inputs") from None
    except (ValueError, OSError, AttributeError, TypeError) as error:
        raise ProblemError(f"{path} is no .npz file of arrays: {error}") from None


def answer(config: Any, inputs: Arrays, folder: Path) -> Arrays:
    """Run the model.

    Raises:
        ProblemError: it cannot be loaded, or takes other inputs.
    """
    try:
        predictor = inference.create_predictor(config)
    except Exception as error:  # noqa: BLE001 (Paddle's own errors share no better base)
        raise ProblemError(f"the model in {folder} cannot be loaded: {last_line(error)}") from None
    wanted = predictor.get_input_names()
    if sorted(wanted) != sorted(inputs):
        raise ProblemError(f"the model takes {wanted}, the inputs are {sorted(inputs)}")
    for name in wanted:
        predictor.get_input_handle(name).copy_from_cpu(inputs[name])
    try:
        predictor.run()
    except Exception as error:  # noqa: BLE001 (as above)
        raise ProblemError(f"the model in {folder} cannot be run: {last_line(error)}") from None
    handles = [predictor.get_output_handle(name) for name in predictor.get_output_names()]
    # Named by position: the two formats name the same output differently.
    return {f"output_{number}": handle.copy_to_cpu() for number, handle in enumerate(handles)}


def last_line(error: Exception) -> str:
    """Return the line of Paddle's message that says what is wrong; most say where in Paddle."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return next((line.strip() for line in lines if "Error: " in line), lines[-1].strip())


def read_text(scores: npt.NDArray[Any], characters: list[str]) -> list[str]:
    """Return the text of each line: the best class of each step, repeats and blanks taken out.

    Raises:
        ProblemError: these are no scores of the recogniser.
    """
    if scores.ndim != 3 or scores.shape[-1] != len(characters):
        raise ProblemError(f"scores of shape {list(scores.shape)} are not the recogniser's")
    lines = []
    for best in scores.argmax(axis=-1):
        changed = np.concatenate([[True], best[1:] != best[:-1]])
        lines.append("".join(characters[index] for index in best[changed]))
    return lines


if __name__ == "__main__":
    run(main)
