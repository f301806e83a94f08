"""The exported files as ``paddle.jit.load`` gives them back: a layer, in evaluation mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.backends.exports.program import read_program
from tipcheck.backends.layers.nesting import tensors_in
from tipcheck.backends.stages import Place, StageKind, register

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class LoadedRunner:
    """A translated layer; it takes its inputs by place."""

    def __init__(self, model: Path) -> None:
        import paddle

        self._paddle = paddle
        self._layer = paddle.jit.load(str(model.with_suffix("")))
        self._layer.eval()
        self._names = [spec.name for spec in read_program(model).inputs]

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        """Return the outputs of one run."""
        given = [self._paddle.to_tensor(feed[name]) for name in self._names]
        with self._paddle.no_grad():
            return [tensor.numpy() for _, tensor in tensors_in(self._layer(*given))]

    def clone(self) -> LoadedRunner:
        """Say that layers are not cloned this way."""
        raise NotImplementedError


def start(place: Place) -> LoadedRunner:
    """Load the layer."""
    return LoadedRunner(place.exported())


register(StageKind("jit_load", start))
