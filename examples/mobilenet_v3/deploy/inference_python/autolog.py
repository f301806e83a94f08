"""Report times and environment in the form of AutoLog, which Paddle's CI tools read."""

from __future__ import annotations

import platform
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import paddle


@dataclass
class Times:
    """Seconds spent, summed over all images."""

    preprocess: float = 0.0
    inference: float = 0.0
    postprocess: float = 0.0
    images: int = 0

    def add(self, preprocess: float, inference: float, postprocess: float, images: int) -> None:
        """Add one batch."""
        self.preprocess += preprocess
        self.inference += inference
        self.postprocess += postprocess
        self.images += images


@dataclass(frozen=True)
class Ran:
    """What was run: the names of model and precision, the batch size, the shape of an input."""

    model: str
    precision: str
    batch_size: int
    shape: str


def report(config: Any, times: Times, ran: Ran) -> None:
    """Print the block; times are per image."""
    for line in _lines(config, times, ran):
        print(f"[{time.strftime('%Y/%m/%d %H:%M:%S')}] root INFO: {line}")


def _lines(config: Any, times: Times, ran: Ran) -> Iterator[str]:
    gpu = config.use_gpu()
    each = 1000 / max(times.images, 1)
    total = times.preprocess + times.inference + times.postprocess
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_mb = peak / (2**20 if sys.platform == "darwin" else 2**10)
    gpu_mb = paddle.device.cuda.max_memory_reserved() / 2**20 if gpu else None
    threads = config.cpu_math_library_num_threads()

    yield "---------------------- Env info ----------------------"
    yield f" OS_version: {platform.platform()}"
    yield f" CUDA_version: {paddle.version.cuda()}"
    yield f" CUDNN_version: {paddle.version.cudnn()}"
    yield " drivier_version: None"
    yield "---------------------- Paddle info ----------------------"
    yield f" paddle_version: {paddle.__version__}"
    yield f" paddle_commit: {paddle.version.commit}"
    yield " log_api_version: 1.0"
    yield "----------------------- Conf info -----------------------"
    yield f" runtime_device: {'gpu' if gpu else 'cpu'}"
    yield f" ir_optim: {config.ir_optim()}"
    yield " enable_memory_optim: False"
    yield f" enable_tensorrt: {config.tensorrt_engine_enabled()}"
    yield f" enable_mkldnn: {config.mkldnn_enabled()}"
    yield f" cpu_math_library_num_threads: {threads}"
    yield "----------------------- Model info ----------------------"
    yield f" model_name: {ran.model}"
    yield f" precision: {ran.precision}"
    yield "----------------------- Data info -----------------------"
    yield f" batch_size: {ran.batch_size}"
    yield f" input_shape: {ran.shape}"
    yield f" data_num: {times.images}"
    yield "----------------------- Perf info -----------------------"
    yield f" cpu_rss(MB): {peak_mb:.4f}, gpu_rss(MB): {gpu_mb}, gpu_util: None%"
    yield f" total time spent(s): {total:.4f}"
    yield (
        f" preprocess_time(ms): {times.preprocess * each:.4f}, "
        f"inference_time(ms): {times.inference * each:.4f}, "
        f"postprocess_time(ms): {times.postprocess * each:.4f}"
    )
