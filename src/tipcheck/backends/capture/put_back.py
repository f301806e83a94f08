"""Puts back what the layer's own run may change, where it has to run in the user's process."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def everything_put_back(what: tuple[Any, ...], printed: str) -> Iterator[None]:
    """Put back random numbers, buffers, training flags, modes and the output streams.

    Args:
        what: what the save was given; the first is the layer.
        printed: file that takes what is printed meanwhile.
    """
    import numpy as np
    import paddle

    layers = list(what[0].sublayers(include_self=True)) if hasattr(what[0], "sublayers") else []
    flags = [(layer, layer.training) for layer in layers]
    buffers = [
        (buffer, buffer.numpy().copy())
        for layer in layers
        for buffer in layer._buffers.values()  # noqa: SLF001 - those of this very layer
        if buffer is not None
    ]
    numbers = (random.getstate(), np.random.get_state(), paddle.get_rng_state())  # noqa: NPY002
    dynamic = paddle.in_dynamic_mode()
    translator: Any = paddle.jit.api.ProgramTranslator()
    converts = translator.enable_to_static
    try:
        with _printing_to(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        translator.enable_to_static = converts
        if dynamic != paddle.in_dynamic_mode():
            (paddle.disable_static if dynamic else paddle.enable_static)()
        random.setstate(numbers[0])
        np.random.set_state(numbers[1])  # noqa: NPY002 - the user's is the old one
        paddle.set_rng_state(numbers[2])
        for layer, training in flags:
            layer.training = training
        for buffer, value in buffers:
            buffer.set_value(value)


@contextlib.contextmanager
def _printing_to(path: str) -> Iterator[None]:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    kept = [os.dup(number) for number in (1, 2)]
    try:
        for number in (1, 2):
            os.dup2(file, number)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        for number, was in zip((1, 2), kept, strict=True):
            os.dup2(was, number)
            os.close(was)
        os.close(file)
