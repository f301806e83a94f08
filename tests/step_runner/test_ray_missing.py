"""What one is told who asks for the engine ``ray`` and has no Ray."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.step_runner.conftest import Chain
from tipcheck import wire

TOOL = Path(__file__).with_name("tool.py")


def told(chain: Chain, *options: str) -> tuple[int, str]:
    plan = chain.root / "plan.json"
    plan.write_text(wire.dumps(chain.plan(chain.step("a", "true"))))
    words = [sys.executable, str(TOOL), "run", str(plan), "--output=out", *options]
    done = subprocess.run(words, cwd=chain.root, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed here")
def test_how_to_get_it(chain: Chain) -> None:
    code, words = told(chain, "--engine=ray")
    assert code == 2
    assert "--engine ray needs Ray, which is not installed; pip install 'ray>=2.40'" in words
    assert not (chain.root / "out").exists()


@pytest.mark.parametrize("option", ["--address=h:1", "--shared-output"])
def test_options_of_ray_without_it(chain: Chain, option: str) -> None:
    code, words = told(chain, option)
    assert code == 2
    assert "--address and --shared-output are for --engine ray" in words
