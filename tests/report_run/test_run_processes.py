"""``--device cpu:2`` trains in two real processes that talk to each other."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from tests.config_plans.configs import TUTORIAL
from tipcheck.cli import run as command

TRAIN = """
import paddle
import paddle.distributed as dist

dist.init_parallel_env()
value = paddle.to_tensor([dist.get_rank() + 1.0])
dist.all_reduce(value)
backend = dist.get_backend()
print("rank", dist.get_rank(), "of", dist.get_world_size(), backend, float(value.item()))
"""


@pytest.mark.paddle
def test_two_processes_train_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    config = tmp_path / "test_tipc" / "configs" / "tiny" / "train_infer_python.txt"
    config.parent.mkdir(parents=True)
    config.write_text(TUTORIAL, "utf-8")
    (tmp_path / "fit.py").write_text(TRAIN)
    parser = argparse.ArgumentParser()
    command.configure(parser)
    arguments = [str(config), "--mode", "lite_train_lite_infer", "--profile", "tutorial"]
    arguments += ["--device", "cpu:2", "--only", "train", "--python", sys.executable]
    assert command.run(parser.parse_args(arguments)) == 0
    said = [file.read_text() for file in sorted(tmp_path.rglob("workerlog.*"))]
    assert len(said) == 2
    for rank, text in enumerate(said):
        assert f"rank {rank} of 2 GLOO 3.0" in text
