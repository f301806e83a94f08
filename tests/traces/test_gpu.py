"""Every GPU and TensorRT mode, for real. These need a GPU build of Paddle and a device."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from tipcheck.backends.graphs.inspector import read_engines, visible_outputs
from tipcheck.backends.tracing.execution import Execution, trace
from tipcheck.backends.tracing.run_modes import GPU_PLAIN, ModeSettings, default_baseline
from tipcheck.blame.lockstep import side_by_side
from tipcheck.compare.judge import Rules

HERE = Path("/dev/nvidia0").exists() and "paddlepaddle-gpu" in {
    one.name for one in metadata.distributions()
}
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.paddle,
    pytest.mark.skipif(not HERE, reason="not here: no GPU, or no GPU build of PaddlePaddle"),
]
LOOSE = {"fp32": 1e-3, "fp16": 0.1, "bf16": 0.3, "int8": 1.0}


@pytest.mark.parametrize(
    "run_mode", ["gpu_fp32", "gpu_fp16", "gpu_bf16", "trt_fp32", "trt_fp16", "trt_int8"]
)
def test_a_mode_is_compared_with_the_plain_gpu(models: Path, tmp_path: Path, run_mode: str) -> None:
    model, inputs = models / "mobilenet.json", models / "mobilenet.npz"
    calibration = str(inputs) if run_mode == "trt_int8" else ""
    settings = ModeSettings(cache=str(tmp_path), calibration=calibration)
    baseline = default_baseline(run_mode)
    assert baseline == GPU_PLAIN
    with side_by_side(
        Execution(model, baseline), Execution(model, run_mode, settings), inputs
    ) as run:
        result = run.compare(inputs, Rules())
    assert result.complete, result.stopped_by
    for ours, theirs in result.outputs.values():
        rms = float(np.sqrt(np.mean(np.square(ours))))
        assert float(np.abs(ours - theirs).max()) <= LOOSE[run_mode[-4:]] * rms
    if run_mode.startswith("trt"):
        assert visible_outputs(read_engines(tmp_path))


def test_the_plain_gpu_shows_its_tensors(models: Path) -> None:
    seen = trace(models / "mobilenet.json", GPU_PLAIN, models / "mobilenet.npz")
    assert len(seen.tensors) > 100
