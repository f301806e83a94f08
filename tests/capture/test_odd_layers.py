"""Layers that misbehave when they run: the command is none the wiser, the verdict says so."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.capture.conftest import unmeasured

pytestmark = [pytest.mark.paddle, pytest.mark.slow]

SCRIPT = """
import os, random, sys, time
import numpy as np
import paddle


class Odd(paddle.nn.Layer):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.f = paddle.nn.Linear(4, 2)

    def forward(self, x):
        if paddle.in_dynamic_mode():
            self.odd()
        return self.f(x)

    @paddle.jit.not_to_static
    def odd(self):
        if self.kind == "segfault":
            import ctypes

            ctypes.string_at(0)
        elif self.kind == "hang":
            while True:
                time.sleep(1)
        elif self.kind == "exit":
            sys.exit(7)
        elif self.kind == "leave":
            os._exit(3)
        elif self.kind == "print":
            for _ in range(100):
                print("x" * (1 << 20))
        elif self.kind == "random":
            random.seed(1), np.random.seed(1), paddle.seed(1)
        elif self.kind == "file":
            open("left.txt", "w").write("x")
        elif self.kind == "raise":
            raise ValueError("broken")


random.seed(5), np.random.seed(6), paddle.seed(7)
held = open("held.txt", "w")
held.write("held back")
for kind in sys.argv[1:]:
    layer = Odd(kind)
    if kind != "training":
        layer.eval()
    print(kind)
    spec = [paddle.static.InputSpec([None, 4], "float32", "x")]
    paddle.jit.save(layer, f"out/{kind}", input_spec=spec)
    print(random.random(), np.random.rand(), float(paddle.rand([1])))
held.close()
sys.exit(0)
"""
KINDS = ("segfault", "exit", "leave", "print", "random", "file", "raise", "training", "hang")
WORDS = {
    "segfault": ("CRASH", "died on SIGSEGV"),
    "hang": ("CRASH", "ran out of time (after 6 s)"),
    "exit": ("CRASH", "it calls sys.exit(7)"),
    "leave": ("CRASH", "ended its process with code 3"),
    "print": ("PASS", "printed"),
    "random": ("PASS", "changes the global random state (random, numpy, paddle)"),
    "file": ("CRASH", "writes to"),
    "raise": ("CRASH", "ValueError: broken"),
    "training": ("PASS", "saved in training mode"),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the script alone and verified."""
    found: dict[str, Any] = {}
    for way in ("alone", "verified"):
        folder = tmp_path_factory.mktemp(way)
        (folder / "odd.py").write_text(SCRIPT, encoding="utf-8")
        command = [sys.executable, "odd.py", *KINDS]
        if way == "verified":
            options = ["--stages", "inference_ir", "--no-state", "--no-referee"]
            options += ["--layer-limit", "6", "--json", "../report.json"]
            command = [sys.executable, "-m", "tipcheck", "verify", *options, "--", *command]
        ran = subprocess.run(
            command, cwd=folder, env=unmeasured(), capture_output=True, check=False
        )
        if way == "verified":
            found["report"] = json.loads((folder.parent / "report.json").read_text("utf-8"))
        names = sorted(path for path in folder.rglob("*") if path.is_file())
        found[way] = {
            "code": ran.returncode,
            "stdout": ran.stdout,
            "files": {str(path.relative_to(folder)): path.read_bytes() for path in names},
        }
    return found


def test_the_command_is_none_the_wiser(both: dict[str, Any]) -> None:
    assert both["verified"]["stdout"] == both["alone"]["stdout"]
    assert both["verified"]["files"] == both["alone"]["files"]
    assert both["alone"]["code"] == 0
    assert both["verified"]["code"] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_verdict_says_so(both: dict[str, Any], kind: str) -> None:
    found = next(one for one in both["report"]["exports"] if one["name"] == f"out/{kind}")
    status, words = WORDS[kind]
    assert (found["status"], words in " ".join([found["sentence"], *found["notes"]])) == (
        status,
        True,
    ), found
