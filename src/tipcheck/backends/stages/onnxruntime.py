"""The model as paddle2onnx converts it, on ONNX Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.backends.exports.to_onnx import to_onnx
from tipcheck.backends.stages import Place, StageKind, register

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class SessionRunner:
    """A session on the CPU."""

    def __init__(self, file: Path, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"]
        )
        self._names = [item.name for item in self._session.get_inputs()]

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        """Return the outputs of one run."""
        return list(self._session.run(None, {name: feed[name] for name in self._names}))

    def clone(self) -> SessionRunner:
        """Say that sessions are not cloned."""
        raise NotImplementedError


def start(place: Place) -> SessionRunner:
    """Convert and load."""
    return SessionRunner(to_onnx(place), place.threads)


register(StageKind("onnxruntime", start, inference=True, onto="executor"))
