"""Every way of running a model that tipcheck knows, as data, with what each needs to be there.

``STAGES`` are the rungs of the ladder, in order, each changing one thing. ``RUN_MODES`` are the
ways a predictor can be compared op by op; each runs as one of the stages does. What a machine
offers of them is found out by ``tipcheck doctor``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Need(str, Enum):
    """Something that has to be there before a way can run."""

    PADDLE = "paddle"
    CUDA_BUILD = "cuda build"
    GPU = "gpu"
    TENSORRT_BUILD = "tensorrt build"
    AVX512 = "avx512"
    PADDLE2ONNX = "paddle2onnx"
    ONNXRUNTIME = "onnxruntime"
    OPENVINO = "openvino"


@dataclass(frozen=True, slots=True)
class Lack:
    """What to say about a need that is not met: why not, and what to do about it."""

    because: str
    get: str


LACKS: dict[Need, Lack] = {
    Need.PADDLE: Lack(
        "PaddlePaddle is not installed", "pip install 'paddlepaddle>=3.2' 'numpy<2.4' setuptools"
    ),
    Need.CUDA_BUILD: Lack(
        "this PaddlePaddle is a CPU build",
        "install paddlepaddle-gpu, on a machine with an NVIDIA GPU",
    ),
    Need.GPU: Lack("PaddlePaddle sees no GPU", "use a machine with an NVIDIA GPU and its driver"),
    Need.TENSORRT_BUILD: Lack(
        "this PaddlePaddle is built without TensorRT",
        "install a paddlepaddle-gpu build with TensorRT, and TensorRT itself",
    ),
    Need.AVX512: Lack(
        "this CPU has no AVX-512, without which oneDNN ignores bfloat16",
        "use a CPU with AVX-512, better one with avx512_bf16 or amx_bf16",
    ),
    Need.PADDLE2ONNX: Lack("paddle2onnx is not installed", "pip install onnxruntime paddle2onnx"),
    Need.ONNXRUNTIME: Lack("ONNX Runtime is not installed", "pip install onnxruntime paddle2onnx"),
    Need.OPENVINO: Lack("OpenVINO is not installed", "pip install openvino paddle2onnx"),
}


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running a model.

    Attributes:
        name: what the user types.
        what: what is run, or what it changes compared with the way before it.
        needs: what has to be there.
        runs_as: the stage that runs it; its own name for stages.
    """

    name: str
    what: str
    needs: tuple[Need, ...]
    runs_as: str = ""

    @property
    def stage(self) -> str:
        """The stage that runs this way."""
        return self.runs_as or self.name


_GPU = (Need.PADDLE, Need.CUDA_BUILD, Need.GPU)
_TRT = (*_GPU, Need.TENSORRT_BUILD)
# The engine first: its extra brings the converter along.
_ONNX_RUNTIME = (Need.PADDLE, Need.ONNXRUNTIME, Need.PADDLE2ONNX)
_OPENVINO = (Need.PADDLE, Need.OPENVINO, Need.PADDLE2ONNX)

STAGES: tuple[Way, ...] = (
    Way("eager", "the layer itself, op by op", (Need.PADDLE,)),
    Way("to_static", "the layer as one traced program", (Need.PADDLE,)),
    Way("jit_load", "the exported files, loaded by paddle.jit.load", (Need.PADDLE,)),
    Way("executor", "the exported program, run as it is by the static executor", (Need.PADDLE,)),
    Way("inference", "Paddle Inference with every optimisation off", (Need.PADDLE,)),
    Way("inference_memory", "memory reuse on", (Need.PADDLE,)),
    Way("inference_ir", "IR passes on", (Need.PADDLE,)),
    Way("onednn", "oneDNN kernels", (Need.PADDLE,)),
    Way("onednn_bf16", "oneDNN in bfloat16", (Need.PADDLE, Need.AVX512)),
    Way("onednn_int8", "oneDNN in int8, for quantised models", (Need.PADDLE,)),
    Way("gpu", "Paddle Inference on the GPU", _GPU),
    Way("gpu_fp16", "the GPU in float16", _GPU),
    Way("gpu_bf16", "the GPU in bfloat16", _GPU),
    Way("trt_fp32", "TensorRT subgraphs in float32", _TRT),
    Way("trt_fp16", "TensorRT subgraphs in float16", _TRT),
    Way("trt_int8", "TensorRT subgraphs in int8, with calibration data", _TRT),
    Way("onnxruntime", "converted by paddle2onnx, on ONNX Runtime", _ONNX_RUNTIME),
    Way("openvino", "converted by paddle2onnx, on OpenVINO", _OPENVINO),
)

_BY_NAME = {way.name: way for way in STAGES}


def _mode(name: str, stage: str) -> Way:
    way = _BY_NAME[stage]
    return Way(name, way.what, way.needs, stage)


RUN_MODES: tuple[Way, ...] = (
    _mode("cpu_ir", "inference_ir"),
    _mode("onednn_fp32", "onednn"),
    _mode("onednn_bf16", "onednn_bf16"),
    _mode("onednn_int8", "onednn_int8"),
    _mode("onnxruntime", "onnxruntime"),
    _mode("openvino", "openvino"),
    _mode("gpu_fp32", "gpu"),
    _mode("gpu_fp16", "gpu_fp16"),
    _mode("gpu_bf16", "gpu_bf16"),
    _mode("trt_fp32", "trt_fp32"),
    _mode("trt_fp16", "trt_fp16"),
    _mode("trt_int8", "trt_int8"),
)
