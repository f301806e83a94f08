"""The worker behind ``tipcheck doctor``: asks Paddle what it is, and tries each way of running it.

Run as ``python -m tipcheck.backends.doctor.probe`` by ``isolation.run_worker``. A way is only
called there when a small model has run that way and its answers are close to those of the layer it
came from; being accepted by a build that then does something else does not count.
"""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.isolation import answer_request
from tipcheck.backends.predictor import CONFIG_CALLS, make_predictor, run_predictor

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = Callable[[dict[str, Any]], None]

_CLOSE = {"fp32": 1e-4, "low": 0.1}
"""How far from the layer's answers (rms 1) a way may be to count as working, by precision."""


def work(request: dict[str, Any], answer: Answer) -> None:
    """Answer one request: ``{"ask": "build"}`` or ``{"ask": "ways", "ways": [...]}``."""
    if request["ask"] == "build":
        answer(_describe_build())
    else:
        _try_ways(request["ways"], request["format"], answer)


def _describe_build() -> dict[str, Any]:
    import paddle

    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            paddle.utils.run_check()
        problem = ""
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        problem = _one_line(error)
    lines = [line.strip() for line in printed.getvalue().splitlines() if line.strip()]
    cuda = paddle.version.cuda()
    trt = paddle.inference.get_trt_compile_version()
    count = paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0
    return {
        "version": paddle.version.full_version,
        "commit": paddle.version.commit,
        "cuda": str(cuda) if cuda not in (False, "False") else "",
        "tensorrt": ".".join(map(str, trt)) if any(trt) else "",
        "gpus": [paddle.device.cuda.get_device_name(index) for index in range(count)],
        "check": problem or (lines[-1] if lines else "printed nothing"),
        "works": not problem,
    }


def _try_ways(ways: list[str], export: str, answer: Answer) -> None:
    trial = _Trial(export)
    for way in ways:
        answer({"trying": way})
        try:
            outputs = trial.run(way)
            problem = trial.judge(way, outputs)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            problem = _one_line(error)
        answer({"way": way, "problem": problem})


class _Trial:
    """A small convolutional net, its input, its export, and the answers everything must give."""

    def __init__(self, export: str) -> None:
        import numpy as np
        import paddle

        class Net(paddle.nn.Layer):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.conv = paddle.nn.Conv2D(3, 16, 3)
                self.norm = paddle.nn.BatchNorm2D(16)
                self.head = paddle.nn.Linear(16 * 14 * 14, 32)

            def forward(self, x: Any) -> Any:  # noqa: ANN401
                x = paddle.nn.functional.relu(self.norm(self.conv(x)))
                return self.head(paddle.flatten(x, 1))

        paddle.seed(7)
        self._net = Net()
        self._net.eval()
        self._input = np.random.default_rng(7).standard_normal((2, 3, 16, 16), dtype=np.float32)
        self._wanted = self._net(paddle.to_tensor(self._input)).numpy()
        self._model = Path("trial" + (".json" if export == "json" else ".pdmodel"))
        spec = paddle.static.InputSpec([None, 3, 16, 16], "float32", "x")
        paddle.jit.save(self._net, "trial", input_spec=[spec])
        if not self._model.exists():
            raise RuntimeError(f"this Paddle does not write {self._model.suffix}")

    def run(self, way: str) -> Any:  # noqa: ANN401 - an array
        """Return the answers of one way."""
        if way in CONFIG_CALLS:
            return run_predictor(make_predictor(self._model, way), {"x": self._input})[0]
        return {
            "eager": self._eager,
            "to_static": self._to_static,
            "jit_load": self._jit_load,
            "executor": self._executor,
            "onnxruntime": self._onnxruntime,
            "openvino": self._openvino,
        }[way]()

    def judge(self, way: str, outputs: Any) -> str:  # noqa: ANN401 - an array
        """Return why the answers show that the way does not work; empty when it does."""
        import numpy as np

        low = way.endswith(("bf16", "fp16"))
        limit = _CLOSE["low" if low else "fp32"]
        off = float(np.max(np.abs(outputs - self._wanted)))
        if not off <= limit * float(np.sqrt(np.mean(np.square(self._wanted)))):
            return f"its answers to a small model are off by {off:.2g}"
        full = {"onednn_bf16": "onednn", "gpu_fp16": "gpu", "gpu_bf16": "gpu", "trt_fp16": "gpu"}
        if way in full and np.array_equal(outputs, self.run(full[way])):
            return "it is accepted, but the answers are those of float32, bit for bit"
        return ""

    def _eager(self) -> Any:  # noqa: ANN401
        import paddle

        return self._net(paddle.to_tensor(self._input)).numpy()

    def _to_static(self) -> Any:  # noqa: ANN401
        import paddle

        spec = paddle.static.InputSpec([None, 3, 16, 16], "float32", "x")
        traced = paddle.jit.to_static(self._net.forward, input_spec=[spec], full_graph=True)
        return traced(paddle.to_tensor(self._input)).numpy()

    def _jit_load(self) -> Any:  # noqa: ANN401
        import paddle

        loaded = paddle.jit.load(str(self._model.with_suffix("")))
        loaded.eval()
        return loaded(paddle.to_tensor(self._input)).numpy()

    def _executor(self) -> Any:  # noqa: ANN401
        import paddle

        paddle.enable_static()
        try:
            with paddle.static.scope_guard(paddle.static.Scope()):
                executor = paddle.static.Executor(paddle.CPUPlace())
                program, feeds, fetches = paddle.static.load_inference_model(
                    str(self._model.with_suffix("")), executor
                )
                return executor.run(program, feed={feeds[0]: self._input}, fetch_list=fetches)[0]
        finally:
            paddle.disable_static()

    def _to_onnx(self) -> str:
        import paddle2onnx

        # The default optimiser runs Polygraphy, which may try to install packages.
        paddle2onnx.export(
            str(self._model),
            str(self._model.with_suffix(".pdiparams")),
            "trial.onnx",
            opset_version=16,
            verbose=False,
            optimize_tool="None",
        )
        return "trial.onnx"

    def _onnxruntime(self) -> Any:  # noqa: ANN401
        import onnxruntime

        session = onnxruntime.InferenceSession(self._to_onnx(), providers=["CPUExecutionProvider"])
        return session.run(None, {session.get_inputs()[0].name: self._input})[0]

    def _openvino(self) -> Any:  # noqa: ANN401
        import openvino

        # Left to itself OpenVINO computes in bfloat16 wherever the CPU can.
        compiled = openvino.Core().compile_model(
            self._to_onnx(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
        )
        return compiled([self._input])[0]


def _one_line(error: Exception) -> str:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}"[:200]


if __name__ == "__main__":
    os.environ.setdefault("GLOG_minloglevel", "2")
    answer_request(work)
