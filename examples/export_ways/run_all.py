"""Run every program of this folder, each in a process and an empty folder of its own.

python run_all.py
python run_all.py control_flow formats

The processes are forked from one that has imported Paddle, which is faster than starting each.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import tempfile
from pathlib import Path

import paddle  # noqa: F401 (so that every program finds it imported)

HERE = Path(__file__).resolve().parent
PROGRAMS = (
    "decorator",
    "convert_layer",
    "three_steps",
    "inferred_spec",
    "make_spec",
    "decorator_with_spec",
    "nested_inputs",
    "other_arguments",
    "alternating",
    "control_flow",
    "several_functions",
    "formats",
    "load_and_tune",
    "save_again",
    "wrong_calls",
    "train_mode",
    "side_effects",
)


def main() -> int:
    """Run the programs; the exit status is 1 when one of them fails."""
    parser = argparse.ArgumentParser(description="Run the ways of exporting.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    parser.add_argument("--output-dir", type=Path, help="keep what each prints in NAME.txt there")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in PROGRAMS]
    if unknown:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(PROGRAMS)}")
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        kept = (args.output_dir or Path(scratch)).resolve()
        kept.mkdir(parents=True, exist_ok=True)
        for name in args.names or PROGRAMS:
            place = Path(scratch) / f"{name}.work"
            place.mkdir()
            status = run_forked(name, place, kept)
            failed += status != 0
            print(f"== {name}{f' FAILED with status {status}' if status else ''}")
            print((kept / f"{name}.txt").read_text(encoding="utf-8"), end="", flush=True)
            if status:
                print((kept / f"{name}.err").read_text(encoding="utf-8"), file=sys.stderr)
    return 1 if failed else 0


def run_forked(name: str, place: Path, kept: Path) -> int:
    """Run one program in a child; return its exit status, 128 and more for a signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        for number, suffix in ((1, "txt"), (2, "err")):
            target = os.open(
                kept / f"{name}.{suffix}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644
            )
            os.dup2(target, number)
        status = 1
        try:
            os.chdir(place)
            sys.path.insert(0, str(HERE))
            runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
            status = 0
        except BaseException:  # noqa: BLE001 (the parent reads what it was)
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(ended) % 256


if __name__ == "__main__":
    sys.exit(main())
