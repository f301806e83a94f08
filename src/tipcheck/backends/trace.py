"""What a stage computed on the way: the contract between ``backends`` and ``blame``.

A trace holds what is known about each tensor; the values stream beside it, one at a time, because
all of them together can be larger than memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class TracedTensor:
    """One tensor, in the order in which the stage produced it.

    Attributes:
        index: position in the trace; the only key, because names can come twice.
        op_type: such as ``pd_op.conv2d`` or ``onednn_op.fused_conv2d``.
        name: as the stage calls it; not stable between two predictors on Paddle 3.
        layer_path: path of the layer it comes from, ``/Sequential/Conv2D``, empty when unknown.
        dtype: true element type, ``bfloat16`` included.
        layout: memory layout as reported, such as ``NCHW`` or ``ONEDNN``.
        shape: in the model's own axis order.
        readable: whether its values could be brought into the model's own axis order; a tensor that
            could not is listed and not judged.
        op_index: position of its op among the ops of the graph that ran; -1 when not known.
        value: key of this tensor in ``Graph.values``; -1 when it is not known which it is.
        unreadable_because: why ``readable`` is False.
    """

    index: int
    op_type: str
    name: str
    layer_path: str
    dtype: str
    layout: str
    shape: tuple[int, ...]
    readable: bool = True
    op_index: int = -1
    value: int = -1
    unreadable_because: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """All tensors of one run.

    Attributes:
        stage: name of the stage or run mode.
        tensors: in op order.
    """

    schema: ClassVar[str] = "tipcheck.trace/1"

    stage: str
    tensors: tuple[TracedTensor, ...]
