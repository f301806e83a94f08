"""The model as paddle2onnx converts it, on OpenVINO."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.backends.exports.to_onnx import to_onnx
from tipcheck.backends.stages import Place, StageKind, register

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class CompiledRunner:
    """A compiled model on the CPU, in float32."""

    def __init__(self, file: Path, threads: int, order: Sequence[str]) -> None:
        import openvino

        self._order = list(order)

        # Left to itself OpenVINO computes in bfloat16 wherever the CPU can.
        hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
        self._compiled = openvino.Core().compile_model(str(file), "CPU", hints)
        self._names = [item.get_names() for item in self._compiled.inputs]

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        """Return the outputs of one run."""
        given = [
            next((feed[name] for name in names if name in feed), None) for names in self._names
        ]
        if any(array is None for array in given):
            # The converter may rename an input that is cast at once; their order stays.
            given = [feed[name] for name in self._order]
        found = self._compiled(given)
        return [found[port].copy() for port in self._compiled.outputs]

    def clone(self) -> CompiledRunner:
        """Say that compiled models are not cloned."""
        raise NotImplementedError


def start(place: Place) -> CompiledRunner:
    """Convert and compile."""
    names = [str(item["name"]) for item in place.inputs]
    return CompiledRunner(to_onnx(place), place.threads, names)


register(StageKind("openvino", start, inference=True, onto="onnxruntime"))
