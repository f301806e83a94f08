"""How each run mode configures its predictor while it is watched: the calls, in order, as data.

A stage of the ladder is run as users run it; a run mode is run so that its tensors can be seen.
Memory reuse is off unless it is asked for, because a reused buffer shows what was written to it
last; and everything that a mode needs from the user (calibration data, shapes) is asked for here,
before a process is started.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tipcheck.backends.calibration import GET_SCALES, NO_SCALES, sample_files
from tipcheck.backends.catalogue import RUN_MODES
from tipcheck.errors import UsageError

Calls = tuple[tuple[object, ...], ...]

PLAIN = "cpu_plain"
"""No optimisation, float32, on the CPU: the default baseline of everything that runs there."""
GPU_PLAIN = "gpu_plain"
"""The same on the GPU, with TF32 off."""

DYGRAPH = "dygraph"
"""The layer itself, op by op: its model is ``FILE.py:NAME``."""

_MEMORY_MB = 256
_WORKSPACE = 1 << 30
_PRECISIONS = {"fp32": "Float32", "fp16": "Half", "bf16": "Bfloat16", "int8": "Int8"}


@dataclass(frozen=True, slots=True)
class ModeSettings:
    """What a run mode may be told beyond its name.

    Attributes:
        params: the file with the parameters; by default the one beside the model.
        memory_reuse: let the predictor reuse memory; only for runs that are not watched.
        without: names of passes to leave out, as they are registered.
        threads: threads for the CPU's mathematics; 0 leaves Paddle's own choice.
        shapes: for TensorRT the smallest, largest and usual shape of each input.
        shape_file: for TensorRT a file with shapes that a run has collected.
        calibration: for TensorRT int8 an ``.npz`` file with samples, or a folder of them.
        marked: for TensorRT the names of the tensors that must stay visible inside an engine.
        inspect: for TensorRT write ``engine_info_*.json``, which says what was fused.
        smallest_engine: for TensorRT how many ops an engine has to be worth.
        cache: a folder for what TensorRT writes.
    """

    params: str = ""
    memory_reuse: bool = False
    without: tuple[str, ...] = ()
    threads: int = 0
    shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = field(
        default_factory=dict
    )
    shape_file: str = ""
    calibration: str = ""
    marked: tuple[str, ...] = ()
    inspect: bool = True
    smallest_engine: int = 3
    cache: str = ""


def known_modes() -> tuple[str, ...]:
    """Return the names of everything that can be traced."""
    return (PLAIN, *(mode.name for mode in RUN_MODES), GPU_PLAIN, DYGRAPH)


def default_baseline(run_mode: str) -> str:
    """Return the run mode that one is compared with when nothing is said: the same device, plain.

    Raises:
        UsageError: there is no such run mode.
    """
    check_mode(run_mode)
    return GPU_PLAIN if on_gpu(run_mode) else PLAIN


def check_mode(run_mode: str) -> None:
    """Refuse a name that is no run mode."""
    if run_mode not in known_modes():
        raise UsageError(
            f"there is no run mode {run_mode!r}", hint=f"choose from {', '.join(known_modes())}"
        )


def on_gpu(run_mode: str) -> bool:
    """Whether a run mode runs on the GPU."""
    return run_mode.startswith(("gpu_", "trt_"))


def precision_of(run_mode: str) -> str:
    """Return the coarsest type a run mode computes in, which its float32 results come from too."""
    last = run_mode.rsplit("_", 1)[-1]
    # int8 has no tolerance of its own; bfloat16 has as many bits as int8 uses at best.
    return {"fp16": "float16", "bf16": "bfloat16", "int8": "bfloat16"}.get(last, "float32")


def by_predictor(run_mode: str) -> bool:
    """Whether a run mode is Paddle Inference, and not another runtime."""
    return run_mode not in ("onnxruntime", "openvino")


def environment(run_mode: str) -> dict[str, str]:
    """Return the variables a worker of this mode has to be started with.

    TF32 is a decision of the CUDA libraries; a float32 answer that was computed with 10 bits of
    mantissa is no baseline, and the flag of Paddle for it differs from release to release.
    """
    variables = {"GLOG_minloglevel": "2"}
    if run_mode in (GPU_PLAIN, "gpu_fp32", "trt_fp32"):
        variables["NVIDIA_TF32_OVERRIDE"] = "0"
    return variables


def check_settings(run_mode: str, settings: ModeSettings, *, quantised: bool = False) -> None:
    """Refuse settings that a mode cannot run with.

    Args:
        run_mode: the mode.
        settings: its settings.
        quantised: whether the model carries scales of its own.

    Raises:
        UsageError: something is missing, or a file is not there.
    """
    check_mode(run_mode)
    if run_mode == "trt_int8" and not quantised and not settings.calibration:
        raise UsageError(NO_SCALES, where="trt_int8", hint=GET_SCALES)
    if settings.calibration:
        sample_files(Path(settings.calibration))
    if settings.shape_file and not Path(settings.shape_file).exists():
        raise UsageError(
            f"there is no shape file {settings.shape_file!r}", where=run_mode, hint="check the path"
        )


def config_calls(run_mode: str, settings: ModeSettings, *, quantised: bool = False) -> Calls:
    """Return the calls on ``paddle.inference.Config``, in order.

    Strings that start with ``PrecisionType.`` stand for Paddle's own constants.
    """
    check_settings(run_mode, settings, quantised=quantised)
    calls: Calls = (("enable_memory_optim", settings.memory_reuse),)
    if settings.threads:
        calls += (("set_cpu_math_library_num_threads", settings.threads),)
    if on_gpu(run_mode):
        calls += _gpu(run_mode)
    else:
        calls += _cpu(run_mode)
    if run_mode.startswith("trt_"):
        calls += _tensorrt(run_mode.removeprefix("trt_"), settings, quantised=quantised)
    return calls + tuple(("delete_pass", name) for name in settings.without)


def _cpu(run_mode: str) -> Calls:
    if run_mode == PLAIN:
        return (("disable_onednn",), ("switch_ir_optim", False))
    if run_mode == "cpu_ir":
        return (("disable_onednn",), ("switch_ir_optim", True))
    precision = {
        "onednn_bf16": (("enable_onednn_bfloat16",),),
        "onednn_int8": (("enable_onednn_int8",),),
    }
    return (("switch_ir_optim", True), ("enable_onednn",), *precision.get(run_mode, ()))


def _gpu(run_mode: str) -> Calls:
    precision = run_mode.removeprefix("gpu_") if run_mode.startswith("gpu_") else "fp32"
    name = _PRECISIONS.get(precision, "Float32")
    return (
        ("enable_use_gpu", _MEMORY_MB, 0, f"PrecisionType.{name}"),
        ("switch_ir_optim", run_mode != GPU_PLAIN),
    )


def _tensorrt(precision: str, settings: ModeSettings, *, quantised: bool) -> Calls:
    calibrates = precision == "int8" and not quantised
    calls: Calls = (
        (
            "enable_tensorrt_engine",
            _WORKSPACE,
            1,
            settings.smallest_engine,
            f"PrecisionType.{_PRECISIONS[precision]}",
            False,
            calibrates,
        ),
    )
    if settings.cache:
        calls = (("set_optim_cache_dir", settings.cache), *calls)
    if settings.shapes:
        smallest, largest, usual = (
            {name: list(three[place]) for name, three in settings.shapes.items()}
            for place in range(3)
        )
        calls += (("set_trt_dynamic_shape_info", smallest, largest, usual),)
    elif settings.shape_file:
        calls += (("enable_tuned_tensorrt_dynamic_shape", settings.shape_file, True),)
    if settings.inspect:
        calls += (("enable_tensorrt_inspector", True),)
    if settings.marked:
        calls += (("mark_trt_engine_outputs", list(settings.marked)),)
    return calls


def collecting_calls(settings: ModeSettings, shape_file: str) -> Calls:
    """Return the calls for the run that collects the shapes TensorRT asks for.

    The shapes of all tensors of the plain program on the given inputs, which is what an engine for
    just these inputs needs.
    """
    calls: Calls = (("enable_memory_optim", False),)
    if settings.threads:
        calls += (("set_cpu_math_library_num_threads", settings.threads),)
    return (*calls, *_gpu(GPU_PLAIN), ("collect_shape_range_info", shape_file))


def apply_calls(config: Any, calls: Calls, precisions: Any) -> None:  # noqa: ANN401
    """Make the calls, putting Paddle's constants where their names stand."""
    for method, *arguments in calls:
        getattr(config, str(method))(*(_constant(precisions, item) for item in arguments))


def _constant(precisions: Any, item: object) -> object:  # noqa: ANN401
    if isinstance(item, str) and item.startswith("PrecisionType."):
        return getattr(precisions, item.removeprefix("PrecisionType."))
    return item
