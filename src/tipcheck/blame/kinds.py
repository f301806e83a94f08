"""What an op does, whatever the program calls it: one name for ``pd_op.add_``, ``elementwise_add``.

Names that are not in these tables stand for themselves, so an op nobody has heard of still matches
one of the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tipcheck.backends.graph import GraphOp

_SAME = {
    "elementwise_add": "add",
    "elementwise_sub": "subtract",
    "sub": "subtract",
    "elementwise_mul": "multiply",
    "elementwise_div": "divide",
    "div": "divide",
    "elementwise_pow": "pow",
    "elementwise_max": "maximum",
    "elementwise_min": "minimum",
    "matmul_v2": "matmul",
    "mul": "matmul",
    "fc": "matmul",
    "gemm": "matmul",
    "addmm": "matmul",
    "linear": "matmul",
    "conv": "conv2d",
    "depthwise_conv2d": "conv2d",
    "conv2d_bias": "conv2d",
    "convtranspose": "conv2d_transpose",
    "depthwise_conv2d_transpose": "conv2d_transpose",
    "conv2d_transpose_bias": "conv2d_transpose",
    "convolution": "conv2d",
    "groupconvolution": "conv2d",
    "batchnormalization": "batch_norm",
    "sync_batch_norm": "batch_norm",
    "layernormalization": "layer_norm",
    "reshape2": "reshape",
    "transpose2": "transpose",
    "squeeze2": "squeeze",
    "unsqueeze2": "unsqueeze",
    "flatten2": "flatten",
    "flatten_contiguous_range": "flatten",
    "expand_v2": "expand",
    "lookup_table_v2": "embedding",
    "gather_embedding": "embedding",
    "hard_swish": "hardswish",
    "hard_sigmoid": "hardsigmoid",
    "swish": "silu",
    "gelu_erf": "gelu",
    "gelu_tanh": "gelu",
    "clip": "relu6",
    "clip_relu6": "relu6",
    "bounded_relu": "relu6",
    "reduce_mean": "mean",
    "reducemean": "mean",
    "reduce_sum": "sum",
    "reduce_max": "max",
    "globalaveragepool": "pool2d",
    "averagepool": "pool2d",
    "avgpool": "pool2d",
    "maxpool": "pool2d",
    "nearest_interp_v2": "nearest_interp",
    "bilinear_interp_v2": "bilinear_interp",
    "fill_constant": "full",
    "fill_any_like": "full_like",
    "top_k_v2": "topk",
    "arg_max": "argmax",
}

_ONNX = {"Mul": "multiply", "Multiply": "multiply", "Clip": "relu6", "Resize": "nearest_interp"}

_MOVES = {
    "onednn_to_paddle_layout",
    "memcpy",
    "memcpy_d2h",
    "memcpy_h2d",
    "transfer_dtype",
    "transfer_layout",
    "quantize",
    "dequantize",
    "requantize",
    "cast",
    "assign",
    "share_data",
    "identity",
    "reorder",
    "convert",
}

ACTIVATIONS = frozenset(
    {
        "relu",
        "relu6",
        "hardswish",
        "hardsigmoid",
        "gelu",
        "silu",
        "sigmoid",
        "tanh",
        "leaky_relu",
        "elu",
        "mish",
        "softplus",
        "sqrt",
        "abs",
        "exp",
        "softmax",
    }
)
_ACTIVATION_KEYS = ("fuse_activation", "activation_type", "activation", "act_type", "fuse_relu")
_STARTS = ("fused_", "onednn_", "fuse_")
_LAYOUTS = frozenset({"reshape", "transpose", "squeeze", "unsqueeze", "flatten"})
"""What moves numbers without changing them, but may change their order or the number of axes."""


def kind_of(op_type: str) -> str:
    """Return the name of what an op does."""
    if op_type in _ONNX:  # Paddle's older ``mul`` is a matrix product
        return _ONNX[op_type]
    name = op_type.rsplit(".", 1)[-1].removesuffix("_").lower()
    for start in _STARTS:
        if name not in _SAME and name not in _MOVES:
            name = name.removeprefix(start)
    return _SAME.get(name, name)


def activation_of(op: GraphOp) -> str:
    """Return the kind of the activation that is fused into an op; empty without one."""
    for key in _ACTIVATION_KEYS:
        value = op.attributes.get(key)
        if value is True:
            return "relu"
        if isinstance(value, str) and value and value != "identity":
            return kind_of(value)
    return ""


def can_fuse(op: GraphOp) -> bool:
    """Whether an op can have others fused into it, or is a plain one."""
    name = op.type.rsplit(".", 1)[-1]
    return name.startswith(("fused_", "fuse_", "fc")) or any(
        key in op.attributes for key in _ACTIVATION_KEYS
    )


def moves_only(op: GraphOp) -> bool:
    """Whether an op gives back the numbers it was given, in another place or format."""
    return kind_of(op.type) in _MOVES


def passes_through(op: GraphOp) -> bool:
    """Whether what is taken from an op is what it was given, number for number."""
    if kind_of(op.type) != "dropout":
        return moves_only(op)
    mode = op.attributes.get("mode", op.attributes.get("dropout_implementation"))
    return mode == "upscale_in_train" and bool(op.attributes.get("is_test", True))


def reorders_only(op: GraphOp) -> bool:
    """Whether an op gives back its numbers with other axes."""
    return kind_of(op.type) in _LAYOUTS


def role_of(op: GraphOp, position: int) -> str:
    """Return what an op does with its operand at a position.

    The third and later tensors of a fused convolution or product are added to its result.
    """
    kind = kind_of(op.type)
    if position >= 2 and kind in ("conv2d", "conv2d_transpose", "matmul"):
        return "add"
    return kind
