"""Run every prepared model in every way and compare with the baseline.

    python demo.py                 # all four models, both formats
    python demo.py ocr_det         # only this one

A way that ends in a crash is a result, not the end: what PaddlePaddle says is in the table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from precision.problems import ProblemError, run
from prepare import FORMATS, MODELS, is_whole
from run_model import MODES


def main() -> None:
    """Prepare what is missing, run, compare, print a line each."""
    parser = argparse.ArgumentParser(description="Compare the ways of running some models.")
    add = parser.add_argument
    add("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; default: all")
    add("--folder", type=Path, default=Path("./models"), help="where prepare.py put the models")
    add("--output", type=Path, default=Path("./out"), help="where the outputs go")
    args = parser.parse_args()
    for name in args.models:
        if name not in MODELS:
            parser.error(f"there is no model {name!r}: choose from {', '.join(MODELS)}")
    models = args.models or MODELS
    if not all(is_whole(args.folder / name) for name in models):
        call("prepare.py", *models, f"--output={args.folder}", must=True)
    print(f"{'model':<10} {'format':<8} {'mode':<12} against the baseline", flush=True)
    for name in models:
        for form in FORMATS:
            baseline = None
            for mode in MODES:
                save = args.output / f"{name}_{form}_{mode}.npz"
                save.unlink(missing_ok=True)
                model = args.folder / name / form
                said = call("run_model.py", str(model), f"--mode={mode}", f"--save={save}")
                verdict = f"CRASH  {said}" if said else judge(baseline, save)
                print(f"{name:<10} {form:<8} {mode:<12} {verdict}", flush=True)
                baseline = baseline or (save if not said else None)
    print(f"The outputs are in {args.output}: tipcheck compare says more about any two of them.")


def call(script: str, *words: str, must: bool = False) -> str:
    """Run a script of this folder in a process of its own; return what went wrong, or nothing.

    Raises:
        ProblemError: it had to succeed and did not.
    """
    command = [sys.executable, str(HERE / script), *words]
    if must:
        if subprocess.run(command, check=False).returncode:
            raise ProblemError(f"{script} failed: see above")
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        return f"died on signal {-done.returncode}"
    said = [line.split(": error: ")[1] for line in done.stderr.splitlines() if ": error: " in line]
    return (said or [f"exit code {done.returncode}"])[-1] if done.returncode else ""


def judge(baseline: Path | None, save: Path) -> str:
    """Return how two sets of outputs compare: by tipcheck where it is installed, else by numpy."""
    if baseline is None:
        return "-"
    command = [sys.executable, "-m", "tipcheck", "compare", "--json", str(baseline), str(save)]
    # Without tipcheck, Python ends with 1 as a difference does, but prints nothing.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    with np.load(baseline) as one, np.load(save) as two:
        worst = max(float(np.abs(one[name] - two[name]).max()) for name in one)
    if not done.stdout:
        return f"max abs difference {worst:.2e}"
    return f"{json.loads(done.stdout)['status']:<6} max abs difference {worst:.2e}"


if __name__ == "__main__":
    run(main)
