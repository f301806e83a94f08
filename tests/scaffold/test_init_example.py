"""The example without its ``test_tipc``: init makes one, and its chain runs as it is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tipcheck.cli import init
from tipcheck.config_plans.lint import lint

from .repos import call, tree_of, with_tipcheck

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mobilenet_v3"
LEFT_OUT = ("test_tipc", "output", "log", "downloads", "lite_data*", "images", "__pycache__")
NAME, LITE = "mobilenet_v3_small", "lite_train_lite_infer"
LISTED = {
    f"test_tipc/configs/{NAME}/train_infer_python.txt",
    f"test_tipc/configs/{NAME}/train_amp_infer_python.txt",
    f"test_tipc/configs/{NAME}/train_pact_infer_python.txt",
    "test_tipc/docs/test_train_inference_python.md",
    "test_tipc/docs/test_train_pact_inference_python.md",
    "test_tipc/docs/test_train_amp_inference_python.md",
    "test_tipc/README.md",
    "test_tipc/prepare.sh",
    "test_tipc/test_train_inference_python.sh",
    "test_tipc/common_func.sh",
}
"""The final directory listings of the documents on mixed precision and on PACT."""


@pytest.fixture
def example(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return root


def test_the_tree_is_the_documented_one_and_lints_clean(example: Path) -> None:
    assert call(init, example, "--model-name", NAME, "--yes") == 0
    assert tree_of(example) == LISTED
    configs = sorted((example / "test_tipc/configs" / NAME).iterdir())
    assert [lint(config) for config in configs] == [[], [], []]


@pytest.mark.paddle
@pytest.mark.slow
def test_its_chain_runs_unedited(example: Path, tmp_path: Path) -> None:
    data = [sys.executable, "tools/prepare_data.py", "--generated", "--generated-size=72"]
    subprocess.run(data, cwd=example, check=True, capture_output=True)
    arguments = ("--model-name", NAME, "--yes", "--epochs", "1", "--gpu-list", "-1")
    assert call(init, example, *arguments, "--python", sys.executable) == 0
    config = f"test_tipc/configs/{NAME}/train_infer_python.txt"
    env = with_tipcheck(tmp_path / "bin") | {"OMP_NUM_THREADS": "1"}
    for script in ("prepare.sh", "test_train_inference_python.sh"):
        ran = subprocess.run(
            ["bash", f"test_tipc/{script}", config, LITE],
            cwd=example,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count(" Run successfully with command - ") == 4
    assert f"--model-dir=./log/{NAME}/{LITE}/norm_train_gpus_-1" in ran.stdout
