"""How each stage of Paddle Inference configures its predictor: the calls, in order, as data.

Only worker processes call ``make_predictor``; the table can be read without Paddle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Calls = tuple[tuple[object, ...], ...]

_MEMORY_MB = 256
_WORKSPACE = 1 << 30
_PLAIN: Calls = (("disable_onednn",), ("switch_ir_optim", False), ("enable_memory_optim", False))
_IR: Calls = (("disable_onednn",), ("switch_ir_optim", True), ("enable_memory_optim", False))
_ONEDNN: Calls = (("switch_ir_optim", True), ("enable_memory_optim", False), ("enable_onednn",))


def _gpu(precision: str) -> Calls:
    return (
        ("enable_use_gpu", _MEMORY_MB, 0, f"PrecisionType.{precision}"),
        ("switch_ir_optim", True),
    )


def _engine(precision: str, *, calibrates: bool = False) -> tuple[object, ...]:
    name = f"PrecisionType.{precision}"
    return ("enable_tensorrt_engine", _WORKSPACE, 1, 3, name, False, calibrates)


def _tensorrt(precision: str) -> Calls:
    return (*_gpu("Float32"), _engine(precision))


_TENSORRT = {"trt_fp32": "Float32", "trt_fp16": "Half", "trt_int8": "Int8"}


CONFIG_CALLS: dict[str, Calls] = {
    "inference": _PLAIN,
    "inference_memory": (*_PLAIN[:2], ("enable_memory_optim", True)),
    "inference_ir": _IR,
    "onednn": _ONEDNN,
    "onednn_bf16": (*_ONEDNN, ("enable_onednn_bfloat16",)),
    "onednn_int8": (*_ONEDNN, ("enable_onednn_int8",)),
    "gpu": _gpu("Float32"),
    "gpu_fp16": _gpu("Half"),
    "gpu_bf16": _gpu("Bfloat16"),
    "trt_fp32": _tensorrt("Float32"),
    "trt_fp16": _tensorrt("Half"),
}


def tensorrt_calls(stage: str, *, shapes: str, cache: str, calibrates: bool = False) -> Calls:
    """Return the calls for a stage of TensorRT on a model of the user's.

    Args:
        stage: a stage of TensorRT.
        shapes: file with the shapes of every tensor, as a run has collected them.
        cache: folder for what TensorRT writes; beside the model otherwise.
        calibrates: whether its int8 scales come from samples, and not from the model.
    """
    return (
        *_gpu("Float32"),
        ("set_optim_cache_dir", cache),
        _engine(_TENSORRT[stage], calibrates=calibrates),
        ("enable_tuned_tensorrt_dynamic_shape", shapes, True),
    )


def make_predictor(
    model: Path, stage: str, calls: Calls | None = None, *, quiet: bool = True
) -> Any:  # noqa: ANN401 - Paddle has no types
    """Return a predictor for an exported model, configured for a stage.

    Args:
        model: path of the exported ``.json`` or ``.pdmodel`` file.
        stage: a key of ``CONFIG_CALLS``.
        calls: what to call instead of what the table says.
        quiet: whether its passes are kept from saying what they did.

    Raises:
        RuntimeError: the build of Paddle accepted the calls but does not do what they say.
    """
    from paddle import inference

    config = inference.Config(str(model), str(model.with_suffix(".pdiparams")))
    if quiet:
        config.disable_glog_info()
    for method, *arguments in CONFIG_CALLS[stage] if calls is None else calls:
        getattr(config, str(method))(*(_resolve(inference, item) for item in arguments))
    if stage.startswith(("gpu", "trt")) and not config.use_gpu():
        raise RuntimeError("Paddle accepted enable_use_gpu and stays on the CPU")
    if stage.startswith("trt") and not config.tensorrt_engine_enabled():
        raise RuntimeError("Paddle accepted enable_tensorrt_engine and does not use TensorRT")
    return inference.create_predictor(config)


def run_predictor(predictor: Any, inputs: dict[str, Any]) -> list[Any]:  # noqa: ANN401
    """Return the outputs of one run as arrays, in the model's order."""
    for name in predictor.get_input_names():
        predictor.get_input_handle(name).copy_from_cpu(inputs[name])
    predictor.run()
    names = predictor.get_output_names()
    return [predictor.get_output_handle(name).copy_to_cpu() for name in names]


def _resolve(inference: Any, item: object) -> object:  # noqa: ANN401
    if isinstance(item, str) and item.startswith("PrecisionType."):
        return getattr(inference.PrecisionType, item.removeprefix("PrecisionType."))
    return item
