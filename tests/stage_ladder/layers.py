"""Layers for the tests of verify: good ones, and some that misbehave as badly as they can.

Found by workers as ``layers:NAME``; every factory returns a layer and its InputSpecs.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
from paddle import nn

Made = tuple[Any, list[Any]]
_ROWS = paddle.static.InputSpec([None, 8], "float32", "x")


class Plain(nn.Layer):  # type: ignore[misc]
    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.head = nn.Linear(8, 12)
        self.before = before

    def forward(self, x: Any) -> Any:
        self.before()
        return nn.functional.softmax(self.head(x))


def plain() -> Made:
    return Plain(), [_ROWS]


class TwoWays(Plain):
    """Computes something else when it is exported."""

    def forward(self, x: Any) -> Any:
        scores = self.head(x)
        return scores * 1.01 if paddle.in_dynamic_mode() else scores


def two_ways() -> Made:
    return TwoWays(), [_ROWS]


class Mixed(nn.Layer):  # type: ignore[misc]
    """Rows of a batch see each other; several inputs and outputs, of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(17, 8)
        self.head = nn.Linear(8, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, ids: Any, more: Any) -> Any:
        hidden = self.drop(self.words(ids).mean(axis=1)) * more["scale"][0]
        scores = self.head(hidden - hidden.mean(axis=0, keepdim=True))
        return {"z": scores, "a": [scores.argmax(axis=1), (scores > 0, hidden)]}


def mixed() -> Made:
    ids = paddle.static.InputSpec([None, None], "int64", "ids")
    scale = [paddle.static.InputSpec([None, 1], "float32", "scale")]
    return Mixed(), [ids, {"scale": scale}]


def silent() -> Made:
    layer = Plain()
    layer.head.weight.set_value(paddle.zeros([8, 12]))
    layer.head.bias.set_value(paddle.zeros([12]))
    return layer, [_ROWS]


def without_specs() -> Any:
    return Plain()


def no_layer() -> int:
    return 3


def _dice() -> None:
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002


def _shout() -> None:
    for _ in range(150):
        sys.stdout.write("x" * 100_000 + "\n")


def _leave() -> None:
    sys.exit(3)


def _fault(action: Callable[[], object]) -> Callable[[], Made]:
    @paddle.jit.not_to_static  # type: ignore[untyped-decorator]
    def before() -> None:
        action()

    return lambda: (Plain(before), [_ROWS])


segfault = _fault(lambda: ctypes.string_at(0))
hang = _fault(lambda: time.sleep(600))
leave = _fault(_leave)
vanish = _fault(lambda: os._exit(0))
shout = _fault(_shout)
dice = _fault(_dice)


def inputs() -> list[dict[str, Any]]:
    numbers = np.random.default_rng(0)
    return [{"x": numbers.standard_normal((2, 8)).astype("float32")} for _ in range(2)]


def prepare(path: str) -> Any:
    return np.load(path)


def prepare_nothing(_: str) -> Any:
    raise ValueError("cannot read this")
