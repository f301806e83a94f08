"""Every run mode makes exactly the calls it is made of, in order; those it cannot, it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tipcheck.backends.catalogue import RUN_MODES
from tipcheck.backends.tracing.run_modes import (
    GPU_PLAIN,
    PLAIN,
    ModeSettings,
    apply_calls,
    check_mode,
    collecting_calls,
    config_calls,
    default_baseline,
    environment,
    known_modes,
    precision_of,
)
from tipcheck.errors import UsageError


class Precisions:
    """Stands in for ``paddle.inference.PrecisionType``."""

    Float32, Half, Bfloat16, Int8 = "<fp32>", "<fp16>", "<bf16>", "<int8>"


class Recorder:
    """Stands in for ``paddle.inference.Config`` and writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))


def recorded(
    run_mode: str, settings: ModeSettings | None = None, *, quantised: bool = False
) -> Any:
    config = Recorder()
    calls = config_calls(run_mode, settings or ModeSettings(), quantised=quantised)
    apply_calls(config, calls, Precisions)
    return config.calls


MEMORY = ("enable_memory_optim", False)
IR = ("switch_ir_optim", True)


def gpu(precision: str) -> tuple[Any, ...]:
    return ("enable_use_gpu", 256, 0, precision)


def engine(precision: str, *, calibrates: bool = False) -> tuple[Any, ...]:
    return ("enable_tensorrt_engine", 1 << 30, 1, 3, precision, False, calibrates)


INSPECT = ("enable_tensorrt_inspector", True)
CALLS = {
    PLAIN: [MEMORY, ("disable_onednn",), ("switch_ir_optim", False)],
    "cpu_ir": [MEMORY, ("disable_onednn",), IR],
    "onednn_fp32": [MEMORY, IR, ("enable_onednn",)],
    "onednn_bf16": [MEMORY, IR, ("enable_onednn",), ("enable_onednn_bfloat16",)],
    "onednn_int8": [MEMORY, IR, ("enable_onednn",), ("enable_onednn_int8",)],
    GPU_PLAIN: [MEMORY, gpu("<fp32>"), ("switch_ir_optim", False)],
    "gpu_fp32": [MEMORY, gpu("<fp32>"), IR],
    "gpu_fp16": [MEMORY, gpu("<fp16>"), IR],
    "gpu_bf16": [MEMORY, gpu("<bf16>"), IR],
    "trt_fp32": [MEMORY, gpu("<fp32>"), IR, engine("<fp32>"), INSPECT],
    "trt_fp16": [MEMORY, gpu("<fp32>"), IR, engine("<fp16>"), INSPECT],
}


@pytest.mark.parametrize("run_mode", CALLS)
def test_the_calls_of_a_mode(run_mode: str) -> None:
    assert recorded(run_mode) == CALLS[run_mode]


def test_int8_with_tensorrt_asks_for_calibration_data(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"int8 needs scales.*--calibration"):
        recorded("trt_int8")
    with pytest.raises(UsageError, match="there is no calibration"):
        recorded("trt_int8", ModeSettings(calibration=str(tmp_path / "gone.npz")))
    samples = tmp_path / "samples.npz"
    samples.touch()
    calls = recorded("trt_int8", ModeSettings(calibration=str(samples)))
    assert calls == [MEMORY, gpu("<fp32>"), IR, engine("<int8>", calibrates=True), INSPECT]


def test_a_quantised_model_brings_its_own_scales() -> None:
    assert engine("<int8>") in recorded("trt_int8", quantised=True)


def test_shapes_marked_tensors_and_the_cache_of_tensorrt(tmp_path: Path) -> None:
    settings = ModeSettings(
        shapes={"x": ((1, 3), (8, 3), (4, 3))},
        marked=("relu_0.tmp_0",),
        inspect=False,
        cache=str(tmp_path),
        smallest_engine=5,
    )
    assert recorded("trt_fp16", settings)[3:] == [
        ("set_optim_cache_dir", str(tmp_path)),
        ("enable_tensorrt_engine", 1 << 30, 1, 5, "<fp16>", False, False),
        ("set_trt_dynamic_shape_info", {"x": [1, 3]}, {"x": [8, 3]}, {"x": [4, 3]}),
        ("mark_trt_engine_outputs", ["relu_0.tmp_0"]),
    ]


def test_shapes_that_were_collected_are_used(tmp_path: Path) -> None:
    file = tmp_path / "shapes.pbtxt"
    file.touch()
    calls = recorded("trt_fp32", ModeSettings(shape_file=str(file)))
    assert calls[4] == ("enable_tuned_tensorrt_dynamic_shape", str(file), True)


def test_shapes_are_collected_by_the_plain_program() -> None:
    config = Recorder()
    apply_calls(config, collecting_calls(ModeSettings(threads=4), "s.pbtxt"), Precisions)
    assert config.calls == [
        MEMORY,
        ("set_cpu_math_library_num_threads", 4),
        gpu("<fp32>"),
        ("switch_ir_optim", False),
        ("collect_shape_range_info", "s.pbtxt"),
    ]


def test_passes_are_left_out_last_and_memory_reuse_can_be_asked_for() -> None:
    settings = ModeSettings(memory_reuse=True, without=("a_pass", "b_pass"))
    calls = recorded("cpu_ir", settings)
    assert calls[0] == ("enable_memory_optim", True)
    assert calls[-2:] == [("delete_pass", "a_pass"), ("delete_pass", "b_pass")]


def test_every_run_mode_of_the_catalogue_is_known() -> None:
    assert {mode.name for mode in RUN_MODES} <= set(known_modes())
    with pytest.raises(UsageError, match=r"no run mode 'gpu_fp8'.*onednn_bf16"):
        check_mode("gpu_fp8")


@pytest.mark.parametrize(
    ("run_mode", "baseline"),
    [("onednn_bf16", PLAIN), ("openvino", PLAIN), ("gpu_fp16", GPU_PLAIN), ("trt_int8", GPU_PLAIN)],
)
def test_the_baseline_runs_plainly_on_the_same_device(run_mode: str, baseline: str) -> None:
    assert default_baseline(run_mode) == baseline


def test_tf32_is_off_wherever_float32_is_meant() -> None:
    for run_mode in (GPU_PLAIN, "gpu_fp32", "trt_fp32"):
        assert environment(run_mode)["NVIDIA_TF32_OVERRIDE"] == "0"
    assert "NVIDIA_TF32_OVERRIDE" not in environment("gpu_fp16")


def test_the_coarsest_type_of_a_mode() -> None:
    assert precision_of("onednn_bf16") == "bfloat16"
    assert precision_of("trt_fp16") == "float16"
    assert precision_of("onnxruntime") == "float32"
