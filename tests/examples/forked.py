"""Runs scripts that import Paddle, each in a process forked from one that has imported it.

Reads a JSON list of ``{"argv": […], "cwd": …}`` from stdin and prints a list of ``{"status": …,
"out": …, "err": …}``. Starting twenty Python processes that import Paddle takes most of a minute;
forking them, a few seconds.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import paddle  # noqa: F401 (so that every child finds it imported)


def main() -> None:
    """Run all, print what came of them."""
    print(json.dumps([run(case) for case in json.load(sys.stdin)]))


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Run one script as `python argv…` would, in a child."""
    with tempfile.TemporaryDirectory() as folder:
        files = {1: Path(folder) / "out", 2: Path(folder) / "err"}
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            be_the_script(case, files)
        _, ended = os.waitpid(child, 0)
        out, err = (path.read_text(encoding="utf-8") for path in files.values())
    return {"status": os.waitstatus_to_exitcode(ended), "out": out, "err": err}


def be_the_script(case: dict[str, Any], files: dict[int, Path]) -> None:
    """Become the script; never returns."""
    for number, path in files.items():
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), number)
    status: Any = 0
    try:
        os.chdir(case["cwd"])
        sys.argv = case["argv"]
        sys.path.insert(0, str(Path(case["argv"][0]).resolve().parent))
        runpy.run_path(case["argv"][0], run_name="__main__")
    except SystemExit as ended:
        status = ended.code
    except BaseException:  # noqa: BLE001 (shown as Python itself would show it)
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


if __name__ == "__main__":
    main()
