"""Every GPU and TensorRT stage: for real where there is a GPU, and refused where there is none."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from tipcheck import wire
from tipcheck.backends.catalogue import LACKS, STAGES, Need
from tipcheck.cli.main import main
from tipcheck.compare.verdict import Status
from tipcheck.stage_ladder import LadderResult

pytestmark = pytest.mark.paddle

NAMES = [way.name for way in STAGES if Need.GPU in way.needs]
GPU_BUILD = "paddlepaddle-gpu" in {one.name for one in metadata.distributions()}
HERE = GPU_BUILD and Path("/dev/nvidia0").exists()
WITH_GPU = pytest.mark.skipif(not HERE, reason="not here: no GPU, or no GPU build of PaddlePaddle")
ON_CPU = pytest.mark.skipif(GPU_BUILD, reason="not here: this is a GPU build of PaddlePaddle")


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    folder = tmp_path / "samples"
    folder.mkdir()
    draw = np.random.default_rng(5)
    for number in range(4):
        rows = draw.standard_normal((2, 8)).astype(np.float32)
        np.savez(folder / f"{number}.npz", x=rows)
    return folder


def climbed(export: Path, stages: str, path: Path, *more: str) -> tuple[int, LadderResult]:
    code = main(["verify", str(export), "--stages", stages, "--json", str(path), *more])
    return code, wire.loads(path.read_text(encoding="utf-8"), LadderResult, source=str(path))


@pytest.mark.gpu
@WITH_GPU
@pytest.mark.parametrize("stage", NAMES)
def test_a_stage_on_the_gpu_agrees_with_the_program(
    export: Path, tmp_path: Path, samples: Path, stage: str
) -> None:
    data = ["--calibration", str(samples)] if stage == "trt_int8" else []
    code, result = climbed(export, f"executor,inference,{stage}", tmp_path / "a.json", *data)
    rung = result.rungs[-1]
    if stage.startswith("trt") and rung.status is Status.UNSUPPORTED:
        pytest.skip(f"not here: {rung.reason}")
    assert (code, rung.status) == (0, Status.PASS), rung.reason
    assert rung.bottom is not None
    assert rung.bottom.elements > 100
    assert {check.name for check in rung.state} >= {"run N", "equal rows", "batch 1"}


@pytest.mark.gpu
@WITH_GPU
def test_on_a_gpu_int8_without_data_says_what_to_give(export: Path, tmp_path: Path) -> None:
    code, result = climbed(export, "executor,inference,trt_int8", tmp_path / "a.json")
    assert code == 1
    assert result.rungs[-1].status is Status.UNSUPPORTED


@ON_CPU
def test_on_a_cpu_build_each_of_them_is_unsupported_for_doctors_reason(
    export: Path, tmp_path: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = ",".join(["executor", "inference", *NAMES])
    data = ["--calibration", str(samples), "--no-state"]
    code, result = climbed(export, stages, tmp_path / "a.json", *data)
    assert code == 1  # they were asked for by name
    shown = " ".join(capsys.readouterr().out.split())
    lack = LACKS[Need.CUDA_BUILD]
    assert f"UNSUPPORTED {', '.join(NAMES)}: {lack.because}; {lack.get}" in shown
    found = {rung.stage: rung for rung in result.rungs}
    assert len(NAMES) == 6
    for name in NAMES:
        assert found[name].status is Status.UNSUPPORTED
        assert found[name].reason == f"{lack.because}; {lack.get}"
        assert found[name].bottom is None


@ON_CPU
@pytest.mark.parametrize("stage", NAMES)
def test_on_a_cpu_build_a_stage_alone_is_no_pass(export: Path, tmp_path: Path, stage: str) -> None:
    code, result = climbed(export, stage, tmp_path / "a.json")
    assert (code, result.status) == (1, Status.UNSUPPORTED)


def test_calibration_data_is_looked_at_before_anything_runs(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["verify", str(export), "--stages", "executor,inference", "--no-state"]
    assert main([*command, "--calibration", str(tmp_path / "gone.npz")]) == 2
    assert "there is no calibration data" in capsys.readouterr().err
    assert main([*command, "--calibration", str(tmp_path)]) == 2
    assert "holds no .npz file to calibrate with" in capsys.readouterr().err
    np.savez(tmp_path / "bad.npz", y=np.zeros((1, 8), np.float32))
    assert main([*command, "--calibration", str(tmp_path)]) == 2
    assert "has no array for input 'x'" in capsys.readouterr().err
    np.savez(tmp_path / "bad.npz", x=np.zeros((1, 8), np.float64))
    assert main([*command, "--calibration", str(tmp_path / "bad.npz")]) == 2
    assert "input 'x' is float64, the model takes float32" in capsys.readouterr().err
