"""Whether a run mode can run on this machine at all, asked before anything else is tried.

Paddle itself takes the word GPU on a CPU build and runs on the CPU: who asked for float16 on a GPU
would be told that it passed.
"""

from __future__ import annotations

from tipcheck.backends.catalogue import LACKS, RUN_MODES, Need, Way
from tipcheck.backends.doctor.examine import lack_of, unmet_needs
from tipcheck.backends.tracing.run_modes import on_gpu
from tipcheck.errors import ToolError

_WAYS = {way.name: way for way in RUN_MODES}


def check_machine(run_mode: str) -> None:
    """Refuse a mode whose device, engine or package is not here. Only for worker processes.

    Raises:
        ToolError: says what is missing, and how to get it.
    """
    lack = lack_of(_way(run_mode), _missing())
    if lack is not None:
        hint = f"{lack.get}; tipcheck doctor says what runs on this machine"
        raise ToolError(f"not here: {lack.because}", where=run_mode, hint=hint)


def _way(run_mode: str) -> Way:
    """Return the entry of a mode; what only baselines use is not in the catalogue."""
    plain = _WAYS["gpu_fp32" if on_gpu(run_mode) else "cpu_ir"]
    return _WAYS.get(run_mode, plain)


def _missing() -> set[Need]:
    try:
        import paddle
        from paddle import inference
    except ImportError as error:
        lack = LACKS[Need.PADDLE]
        raise ToolError(
            f"PaddlePaddle cannot be imported ({error})", where="paddle", hint=lack.get
        ) from None
    built = paddle.is_compiled_with_cuda()
    version = inference.get_trt_compile_version()
    return unmet_needs(
        str(paddle.version.cuda()) if built else "",
        paddle.device.cuda.device_count() if built else 0,
        ".".join(map(str, version)) if any(version) else "",
    )
