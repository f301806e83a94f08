"""Every chain of the example in every mode and both formats: which passes, and how long it takes.

    python bench/example_matrix.py --repo out/matrix            # all 40 runs
    python bench/example_matrix.py --repo out/matrix --mode whole_infer --format json

Not a benchmark of speed but the check behind the example's promise: `tipcheck run` is good for all
configs, none of it hollow. It runs in pieces: what has passed in the folder is not run again, so
that an interrupted matrix goes on. Prints a table, and ends with 1 if anything is not good.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "mobilenet_v3"
CONFIGS = sorted((EXAMPLE / "test_tipc/configs/mobilenet_v3_small").glob("*.txt"))
MODES = (
    "lite_train_lite_infer",
    "lite_train_whole_infer",
    "whole_infer",
    "whole_train_whole_infer",
)
FORMATS = {"json": (), "pdmodel": ("--legacy-ir",)}
RANKS = "cpu:2"


def main() -> int:
    """Run what is asked for and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--repo", type=Path, required=True, help="folder for a copy of the example")
    add("--config", action="append", help="stem of a config; repeatable (default: all)")
    add("--mode", action="append", choices=MODES, help="repeatable (default: all)")
    add("--format", action="append", choices=sorted(FORMATS), help="repeatable (default: both)")
    add("--epochs", default="1")
    add("--device", default="cpu", help=f"cpu, or {RANKS} for two processes")
    add("--again", action="store_true", help="run also what has passed before")
    options = parser.parse_args()
    root: Path = options.repo.resolve()
    if not root.is_dir():
        shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("output", ".venv"))
    good = True
    for config in CONFIGS:
        if options.config and config.stem not in options.config:
            continue
        for mode in options.mode or MODES:
            for form in options.format or FORMATS:
                good &= run_one(root, config, mode, form, options)
    return 0 if good else 1


def run_one(root: Path, config: Path, mode: str, form: str, options: argparse.Namespace) -> bool:
    """Run one chain unless it has passed, and print its line."""
    name = str(config.relative_to(EXAMPLE))
    key = f"{config.stem}-{mode}-{form}-{options.device.replace(':', '_')}"
    output = root / "matrix" / key
    line = f"{config.stem:<28} {mode:<24} {form:<8} {options.device:<6}"
    if not options.again and (output / "passed").is_file():
        print(f"{line} good (before)", flush=True)
        return True
    began = time.perf_counter()
    prepared = subprocess.run(
        ["bash", "test_tipc/prepare.sh", name, mode],
        cwd=root,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if prepared.returncode:
        print(f"{line} not prepared: {prepared.stderr.strip()}", flush=True)
        return False
    shutil.rmtree(output, ignore_errors=True)
    ran = subprocess.run(
        [sys.executable, "-m", "tipcheck", "run", name, "--mode", mode, "--output", str(output),
         "--device", options.device, "--epochs", options.epochs, "--python", sys.executable,
         *FORMATS[form]],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    results = output / "results.json"
    steps = json.loads(results.read_text())["steps"] if results.is_file() else []
    told = ", ".join(f"{step['stage']} {step['outcome']}" for step in steps)
    seconds = time.perf_counter() - began
    good = ran.returncode == 0 and bool(steps)
    print(f"{line} {'good' if good else 'BAD '} {seconds:5.0f} s  {told}", flush=True)
    if good:
        (output / "passed").touch()
    else:
        print(ran.stdout[-2000:], ran.stderr[-2000:], flush=True)
    return good


def environment() -> dict[str, str]:
    """Return the environment of prepare.sh: this interpreter instead of the config's."""
    return {**os.environ, "PYTHON": sys.executable}


if __name__ == "__main__":
    sys.exit(main())
