"""The exported form of a quantised model: whole numbers in, one multiplication out.

The graph says what the layers compute in evaluation, with every constant worked out. An activation
is brought to whole numbers by an own multiplication before the pair of ops that engines look for:
that pair's scale is 1 in whole numbers, and an int8 engine that reads it computes the very sums
that a float engine computes. What such an engine would not keep exact stays out of its reach.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.jit.dy2static.program_translator import StaticFunction
from paddle.nn import functional as F  # noqa: N812 - as everybody calls it

from tipcheck.errors import UsageError
from tipcheck.quant.eager import eager
from tipcheck.quant.layers import PactBatchNorm2D, PactConv2D, PactLinear
from tipcheck.quant.quanters import levels

INT8_STEPS = 127
UINT8_STEPS = 255


class _Input(nn.Layer):  # type: ignore[misc]  # Paddle has no types
    """Brings an activation to whole numbers."""

    def __init__(self, quanter: Any, shape: list[int], *, marked: bool) -> None:
        super().__init__()
        self._steps = levels(quanter.bit_length(), signed=quanter.signed)
        self._signed = quanter.signed
        self._marked = marked
        factor = quanter.steps() / quanter.clip_of(paddle.zeros([1] * len(shape)))
        self.register_buffer("factor", factor.reshape(shape if quanter.per_channel else [1]))
        span = INT8_STEPS if self._signed else UINT8_STEPS
        self.register_buffer("span", paddle.full([1], float(span), "float32"))
        self.register_buffer("zero", paddle.zeros([1], "float32"))
        self.register_buffer("half_step", paddle.full([1], 0.5, "float32"))

    def forward(self, x: Any) -> Any:
        """Round and clip; mark what engines look for."""
        places = self._round(x * self.factor)
        places = paddle.clip(places, float(-self._steps if self._signed else 0), float(self._steps))
        if not self._signed:
            places = F.relu(places)  # clipped already; engines take a relu's output for unsigned
        if paddle.in_dynamic_mode():
            return places
        return self._mark(places) if self._marked or _is_new() else places

    def _round(self, x: Any) -> Any:
        """Round; Paddle 3.3's own function does not build older programs."""
        x = x + self.half_step
        return paddle.floor(x) if _is_new() else _append(self, "floor", {"X": x}, "Out", {})

    def _mark(self, places: Any) -> Any:
        """Quantise and dequantise with a step of 1: nothing changes, but int8 passes see it."""
        span = INT8_STEPS if self._signed else UINT8_STEPS
        if _is_new():
            rest = (self.span, self.zero, self.zero, self.zero, -1, 8, -span, span, 0, True, False)
            places = paddle._C_ops.quantize_linear(places, *rest)[0]
            return paddle._C_ops.dequantize_linear(places, *rest)[0]
        settings = _settings(-1, span)
        for kind in ("quantize_linear", "dequantize_linear"):
            inputs = {"X": places, "Scale": self.span, "ZeroPoint": self.zero}
            places = _append(self, kind, inputs, "Y", settings)
        return places


class _Weight(nn.Layer):  # type: ignore[misc]  # Paddle has no types
    """An int8 weight and what a 1 in a sum of its products is worth."""

    def __init__(self, weight: Any, factor: Any) -> None:
        super().__init__()
        whole = weight.numpy().copy()
        largest = np.abs(whole.reshape(len(whole), -1)).max(axis=1)
        worth = factor.numpy().copy()
        # An engine scales a channel by its largest value, and 0 has no scale.
        whole.reshape(len(whole), -1)[largest == 0, 0] = INT8_STEPS
        worth[largest == 0] = 0.0
        self.fits = bool(((largest == 0) | (largest == INT8_STEPS)).all())
        self.worth = worth
        self.register_buffer("whole", paddle.to_tensor(whole.astype("int8")))
        self.register_buffer("span", paddle.full([len(whole)], float(INT8_STEPS), "float32"))
        self.register_buffer("zero", paddle.zeros([len(whole)], "float32"))

    def forward(self) -> Any:
        """Return the weight as whole numbers in float32."""
        if _is_new():
            return self.whole.cast("float32")
        inputs = {"X": self.whole, "Scale": self.span, "ZeroPoint": self.zero}
        return _append(self, "dequantize_linear", inputs, "Y", _settings(0, INT8_STEPS))


class IntegerConv2D(nn.Layer):  # type: ignore[misc]  # Paddle has no types
    """A quantised convolution, ready to be exported."""

    def __init__(self, layer: PactConv2D) -> None:
        super().__init__()
        self._layer = [layer]  # not a sublayer: its float weights stay behind
        first = layer._data_format == "NCHW"
        shape = [1, -1, 1, 1] if first else [1, 1, 1, -1]
        self.weight = _Weight(layer.integer_weight(), layer.sum_step())
        self.input = _Input(layer.activation_quanter, shape, marked=self.weight.fits)
        self.register_buffer("worth", paddle.to_tensor(self.weight.worth).reshape(shape))
        bias = None if layer.bias is None else layer.bias.detach().reshape(shape)
        self.register_buffer("bias", bias)

    def forward(self, x: Any) -> Any:
        """Convolve."""
        out = self._layer[0].convolve(self.input(x), self.weight()) * self.worth
        return out if self.bias is None else out + self.bias


class IntegerLinear(nn.Layer):  # type: ignore[misc]  # Paddle has no types
    """A quantised linear layer, as a convolution: int8 engines get that one right."""

    def __init__(self, layer: PactLinear) -> None:
        super().__init__()
        whole = layer.integer_weight().t()
        self.weight = _Weight(whole.reshape([*whole.shape, 1, 1]), layer.sum_step())
        self.input = _Input(layer.activation_quanter, [1, -1, 1, 1], marked=self.weight.fits)
        self.register_buffer("worth", paddle.to_tensor(self.weight.worth))
        self.register_buffer("bias", None if layer.bias is None else layer.bias.detach())

    def forward(self, x: Any) -> Any:
        """Multiply."""
        dims = len(x.shape)
        if dims == 1:
            sums = self._rows(x.unsqueeze(0)).squeeze(0)
        elif dims == 2:
            sums = self._rows(x)
        elif dims == 3:
            sums = self._sums(x.transpose([0, 2, 1]).unsqueeze(3)).squeeze(3).transpose([0, 2, 1])
        else:
            sums = self._rows(x.flatten(0, -2)).reshape([*x.shape[:-1], len(self.weight.worth)])
        out = sums * self.worth
        return out if self.bias is None else out + self.bias

    def _rows(self, x: Any) -> Any:
        return self._sums(x.unsqueeze([2, 3])).squeeze([2, 3])

    def _sums(self, x: Any) -> Any:
        return F.conv2d(self.input(x), self.weight())


class Affine(nn.Layer):  # type: ignore[misc]  # Paddle has no types
    """A BatchNorm2D whose statistics are final."""

    def __init__(self, layer: PactBatchNorm2D) -> None:
        super().__init__()
        factor, offset = layer.affine()
        self.register_buffer("factor", factor)
        self.register_buffer("offset", offset)

    def forward(self, x: Any) -> Any:
        """Normalise."""
        return x * self.factor + self.offset


def convert(model: Any) -> Any:
    """Return the model as it is exported, in evaluation mode; the model itself stays as it is.

    It computes what the quantised model computes in evaluation. Use ``save`` to write it: which ops
    engines need depends on the format.

    Raises:
        UsageError: the model has no layer that can be exported quantised.
    """
    with eager():
        made = _copy(model)
        made.eval()
        if not _convert_children(made):
            raise UsageError(
                "the model has no quantised layer",
                hint="quantise it first: tipcheck.quant.quantise(model)",
            )
        made.eval()
    return made


def quantised_layers(model: Any) -> list[Any]:
    """Return the quantised layers of a converted model."""
    kinds = IntegerConv2D | IntegerLinear
    return [layer for layer in model.sublayers(include_self=True) if isinstance(layer, kinds)]


def _copy(model: Any) -> Any:
    """Copy a model without the graphs that were made of it."""
    graph = vars(model).get("forward")
    if isinstance(graph, StaticFunction):
        vars(model).pop("forward")
    try:
        return copy.deepcopy(model)
    finally:
        if isinstance(graph, StaticFunction):
            vars(model)["forward"] = graph


def _convert_children(model: Any) -> int:
    count = 0
    for name, child in list(model.named_children()):
        if isinstance(child, PactConv2D) and child.on_the_grid:
            model._sub_layers[name] = IntegerConv2D(child)
            count += 1
        elif isinstance(child, PactLinear) and child.on_the_grid:
            model._sub_layers[name] = IntegerLinear(child)
            count += 1
        elif isinstance(child, PactBatchNorm2D):
            model._sub_layers[name] = Affine(child)
        else:
            count += _convert_children(child)
    return count


def _settings(axis: int, span: int) -> dict[str, Any]:
    """Return the attributes of a quantising op; passes accept a width of 8 only."""
    return {
        "quant_axis": axis,
        "bit_length": 8,
        "qmin": -span,
        "qmax": span,
        "round_type": 0,
        "is_test": True,
    }


def _append(
    layer: Any, kind: str, inputs: dict[str, Any], output: str, settings: dict[str, Any]
) -> Any:
    """Add an op to an older program."""
    out = layer._helper.create_variable_for_type_inference("float32")
    layer._helper.append_op(type=kind, inputs=inputs, outputs={output: out}, attrs=settings)
    out.desc.set_shape(inputs["X"].desc.shape())  # its own ".shape" may hold variables
    return out


def _is_new() -> bool:
    """Whether no older program is being built, the only kind whose int8 passes exist."""
    return bool(paddle.in_dynamic_mode() or paddle.framework.in_pir_mode())
