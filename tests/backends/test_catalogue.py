"""The tables of ways are complete and agree with each other."""

from __future__ import annotations

from tipcheck.backends.catalogue import LACKS, RUN_MODES, STAGES, Need
from tipcheck.backends.predictor import CONFIG_CALLS

NAMES = [way.name for way in STAGES]


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert len({mode.name for mode in RUN_MODES}) == len(RUN_MODES)


def test_every_run_mode_runs_as_a_stage_with_its_needs() -> None:
    stages = {way.name: way for way in STAGES}
    for mode in RUN_MODES:
        assert mode.needs == stages[mode.stage].needs


def test_every_need_that_is_used_can_be_explained() -> None:
    used = {need for way in STAGES for need in way.needs}
    assert used == set(Need) == set(LACKS)


def test_every_configured_stage_exists() -> None:
    assert set(CONFIG_CALLS) <= set(NAMES)


def test_each_stage_configures_what_its_name_says() -> None:
    """The calls of the stages below are what their names promise, and nothing besides."""
    flat = {
        name: [" ".join(map(str, call)) for call in calls] for name, calls in CONFIG_CALLS.items()
    }
    assert flat["inference"] == [
        "disable_onednn",
        "switch_ir_optim False",
        "enable_memory_optim False",
    ]
    assert flat["inference_memory"][-1] == "enable_memory_optim True"
    assert flat["inference_ir"][:2] == ["disable_onednn", "switch_ir_optim True"]
    assert flat["onednn"][-1] == "enable_onednn"
    assert flat["onednn_bf16"] == [*flat["onednn"], "enable_onednn_bfloat16"]
    assert flat["onednn_int8"] == [*flat["onednn"], "enable_onednn_int8"]
    for name, precision in (("gpu", "Float32"), ("gpu_fp16", "Half"), ("gpu_bf16", "Bfloat16")):
        assert flat[name] == [
            f"enable_use_gpu 256 0 PrecisionType.{precision}",
            "switch_ir_optim True",
        ]
    for name, precision in (("trt_fp32", "Float32"), ("trt_fp16", "Half")):
        assert flat[name] == [
            *flat["gpu"],
            f"enable_tensorrt_engine {1 << 30} 1 3 PrecisionType.{precision} False False",
        ]
