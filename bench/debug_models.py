"""Writes the models that traces and alignment are tried on, with inputs beside them.

``python bench/debug_models.py FOLDER [NAME ...] [--size 64] [--batch 2]`` writes ``NAME.json``;
with ``FLAGS_enable_pir_api=0`` in the environment ``NAME.pdmodel``. Weights are random from a fixed
seed; one pass takes over the statistics of every normalisation, so that values keep their scale.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable

Array = Any


class Block(nn.Layer):  # type: ignore[misc]
    """A transformer block, written out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Array) -> Array:
        """Attend, then transform."""
        length, width = x.shape[1], x.shape[2]
        parts = self.qkv(self.before(x)).reshape([-1, length, 3, self.heads, width // self.heads])
        q, k, v = parts.transpose([2, 0, 3, 1, 4]).unbind(0)
        scores = paddle.matmul(q, k, transpose_y=True) * ((width // self.heads) ** -0.5)
        mixed = paddle.matmul(functional.softmax(scores, axis=-1), v)
        mixed = mixed.transpose([0, 2, 1, 3]).reshape([-1, length, width])
        x = x + self.drop(self.proj(mixed))
        return x + self.down(functional.gelu(self.up(self.after(x))))


class Vit(nn.Layer):  # type: ignore[misc]
    """A vision transformer."""

    def __init__(self, size: int) -> None:
        super().__init__()
        width, patch = 64, 16
        self.patch = nn.Conv2D(3, width, patch, patch)
        self.head_token = self.create_parameter([1, 1, width])
        self.place = self.create_parameter([1, (size // patch) ** 2 + 1, width])
        self.blocks = nn.LayerList([Block(width, 4) for _ in range(4)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 100)

    def forward(self, image: Array) -> Array:
        """Classify."""
        x = self.patch(image).flatten(2).transpose([0, 2, 1])
        token = self.head_token.expand([paddle.shape(x)[0], -1, -1])
        x = paddle.concat([token, x], axis=1) + self.place
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Lstm(nn.Layer):  # type: ignore[misc]
    """Two bidirectional layers over embedded words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.rnn = nn.LSTM(32, 48, num_layers=2, direction="bidirect")
        self.head = nn.Linear(96, 10)

    def forward(self, ids: Array) -> Array:
        """Classify."""
        states, _ = self.rnn(self.words(ids))
        return self.head(functional.relu(states).mean(axis=1))


class Encoder(nn.Layer):  # type: ignore[misc]
    """A transformer encoder with a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, 5)

    def forward(self, ids: Array, mask: Array) -> Array:
        """Classify."""
        shut = (mask.unsqueeze([1, 2]).astype("float32") - 1.0) * 1e4
        return self.head(self.layers(self.words(ids), shut)[:, 0])


def write(name: str, folder: Path, size: int, batch: int) -> None:
    """Export one model and the inputs for it."""
    paddle.seed(2018)
    rng = np.random.default_rng(2018)
    spec = paddle.static.InputSpec
    ids = {"ids": rng.integers(0, 100, (batch, 12)).astype("int64")}
    image = {"image": rng.standard_normal((batch, 3, size, size), dtype=np.float32)}
    pixels = [spec([None, 3, size, size], "float32", "image")]
    words = [spec([None, 12], "int64", "ids")]
    both = {**ids, "mask": (np.arange(12) < rng.integers(4, 12, (batch, 1))).astype("int64")}
    known: dict[str, tuple[Callable[[], Any], dict[str, Array], list[Any]]] = {
        "mobilenet": (paddle.vision.models.mobilenet_v3_small, image, pixels),
        "resnet50": (paddle.vision.models.resnet50, image, pixels),
        "vit": (lambda: Vit(size), image, pixels),
        "lstm": (Lstm, ids, words),
        "encoder": (Encoder, both, [*words, spec([None, 12], "int64", "mask")]),
    }
    make, inputs, specs = known[name]
    model = make()
    settle(model, [paddle.to_tensor(array) for array in inputs.values()])
    paddle.jit.save(model, str(folder / name), input_spec=specs)
    given: dict[str, Any] = dict(inputs)
    np.savez(folder / f"{name}.npz", **given)


def settle(model: Any, inputs: list[Any]) -> None:
    """Let every normalisation take over the statistics of one batch."""
    for layer in model.sublayers():
        if isinstance(layer, nn.BatchNorm2D):
            layer._momentum = 0.0  # noqa: SLF001 - Paddle has no public setter
    with paddle.no_grad():
        model.train()
        model(*inputs)
        model.eval()


NAMES = ("mobilenet", "resnet50", "vit", "lstm", "encoder")


def main() -> int:
    """Write the models named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=2)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        write(name, options.folder, options.size, options.batch)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("GLOG_minloglevel", "2")
    sys.exit(main())
