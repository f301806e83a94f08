"""Runs a layer as Python although ``paddle.jit.to_static`` made a graph of it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import paddle
from paddle.jit.dy2static.program_translator import ProgramTranslator

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Set graphs aside for a while, and gradients too."""
    graphs = ProgramTranslator().enable_to_static
    paddle.jit.enable_to_static(False)
    try:
        with paddle.no_grad():
            yield
    finally:
        paddle.jit.enable_to_static(graphs)
