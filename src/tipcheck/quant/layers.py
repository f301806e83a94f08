"""The layers that a quantised model is made of.

In training they are Paddle's, with rounded inputs and weights. In evaluation they compute what
every engine computes to the last bit: convolutions of whole numbers, whose sums are exact in any
order, and in float64 what is not exact. A rounding that follows would turn the last bit of a float
into a whole step of the grid; here there is no last bit to differ in.

``super()`` stands in no forward here: in a graph it is that of the object's own class, and calls
itself for ever.
"""

from __future__ import annotations

import copy
from typing import Any

import paddle
from paddle import nn
from paddle.nn import functional as F  # noqa: N812 - as everybody calls it
from paddle.nn.quant.qat import QuantedConv2D, QuantedLinear
from paddle.quantization import config as paddle_config

from tipcheck.quant.quanters import PactQuanter, PassThrough, WeightQuanter


class _Quantised:
    """What a quantised convolution and a quantised linear layer have in common."""

    weight: Any
    bias: Any
    activation_quanter: Any
    weight_quanter: Any
    training: bool

    @property
    def on_the_grid(self) -> bool:
        """Whether input and weight are whole numbers of a grid, as both quanters are ours."""
        return isinstance(self.activation_quanter, PactQuanter) and isinstance(
            self.weight_quanter, WeightQuanter
        )

    def folded_weight(self) -> Any:
        """Return the weight on the grid of its input: what is rounded.

        Input channels with steps of their own cannot leave the sum; their steps go into the weight.
        """
        if not self.activation_quanter.per_channel:
            return self.weight
        return self.weight * self._channel_steps()

    def _channel_steps(self) -> Any:
        raise NotImplementedError

    def rounded_weight(self) -> Any:
        """Return the weight of the training, with its gradient."""
        if not self.activation_quanter.per_channel:
            return self.weight_quanter(self.weight)
        steps = self._channel_steps().detach()
        return self.weight_quanter(self.weight * steps) / steps

    def integer_weight(self) -> Any:
        """Return the weight as whole numbers."""
        return self.weight_quanter.integers(self.folded_weight())

    def sum_step(self) -> Any:
        """Return what a 1 in the sum of whole numbers is worth, one number per output channel."""
        step = self.weight_quanter.step(self.folded_weight())
        if not self.activation_quanter.per_channel:
            step = step * self.activation_quanter.step().reshape([1] * len(step.shape))
        return step.flatten()


class PactConv2D(_Quantised, QuantedConv2D):  # type: ignore[misc]  # Paddle has no types
    """A convolution with rounded input and weight; with foreign quanters it is Paddle's."""

    def forward(self, x: Any) -> Any:
        """Convolve."""
        if not self.on_the_grid:
            return QuantedConv2D.forward(self, x)
        quanter = self.activation_quanter
        if quanter.observer is not None:
            quanter.observer.see(x)
            return self._conv_forward(x, self.weight)
        if self.training:
            return self._conv_forward(quanter(x), self.rounded_weight())
        sums = self.convolve(quanter.integers(x), self.integer_weight())
        shape = [1, -1, 1, 1] if self._data_format == "NCHW" else [1, 1, 1, -1]
        out = sums * self.sum_step().reshape(shape)
        return out if self.bias is None else out + self.bias.reshape(shape)

    def convolve(self, x: Any, weight: Any) -> Any:
        """Convolve without a bias."""
        padding = self._padding
        if self._padding_mode != "zeros":
            x = F.pad(
                x,
                self._reversed_padding_repeated_twice,
                mode=self._padding_mode,
                data_format=self._data_format,
            )
            padding = 0
        return F.conv2d(
            x,
            weight,
            None,
            self._stride,
            padding,
            self._dilation,
            self._groups,
            self._data_format,
        )

    def _channel_steps(self) -> Any:
        out, each = self.weight.shape[:2]
        steps = self.activation_quanter.step().reshape([self._groups, each])
        steps = paddle.repeat_interleave(steps, out // self._groups, axis=0)
        return steps.reshape([out, each, 1, 1])


class PactLinear(_Quantised, QuantedLinear):  # type: ignore[misc]  # Paddle has no types
    """A linear layer with rounded input and weight; with foreign quanters it is Paddle's."""

    def forward(self, x: Any) -> Any:
        """Multiply."""
        if not self.on_the_grid:
            return QuantedLinear.forward(self, x)
        quanter = self.activation_quanter
        if quanter.observer is not None:
            quanter.observer.see(x)
            return self._linear_forward(x, self.weight)
        if self.training:
            return self._linear_forward(quanter(x), self.rounded_weight())
        sums = paddle.matmul(quanter.integers(x), self.integer_weight())
        out = sums * self.sum_step()
        return out if self.bias is None else out + self.bias

    def _channel_steps(self) -> Any:
        return self.activation_quanter.step().reshape([-1, 1])


class PactBatchNorm2D(nn.BatchNorm2D):  # type: ignore[misc]  # Paddle has no types
    """BatchNorm2D that is one multiplication and one addition in evaluation, on every engine."""

    def forward(self, x: Any) -> Any:
        """Normalise."""
        if self.training and not self._use_global_stats:
            return nn.BatchNorm2D.forward(self, x)
        factor, offset = self.affine()
        return x * factor + offset

    def affine(self) -> tuple[Any, Any]:
        """Return what a channel is multiplied with, and what is added to it."""
        variance = self._variance.cast("float64")
        factor = 1.0 / paddle.sqrt(variance + self._epsilon)
        if self.weight is not None:
            factor = factor * self.weight.cast("float64")
        offset = -self._mean.cast("float64") * factor
        if self.bias is not None:
            offset = offset + self.bias.cast("float64")
        shape = [1, -1, 1, 1] if self._data_format == "NCHW" else [1, 1, 1, -1]
        return tuple(part.cast("float32").reshape(shape) for part in (factor, offset))


class InDouble:
    """A layer without weights that counts in float64 in evaluation, then rounds to float32."""

    training: bool
    plain: Any

    def forward(self, x: Any) -> Any:
        """Compute."""
        if self.training or x.dtype != paddle.float32:
            return self.plain(x)
        return self.plain(x.cast("float64")).cast("float32")


_INEXACT = (
    nn.AdaptiveAvgPool2D,
    nn.AvgPool2D,
    nn.GELU,
    nn.Hardsigmoid,
    nn.Hardswish,
    nn.Sigmoid,
    nn.Silu,
    nn.Swish,
    nn.Tanh,
)
EXACT: dict[type, type] = {nn.BatchNorm2D: PactBatchNorm2D}
for _layer in _INEXACT:
    _name = f"Pact{_layer.__name__}"
    EXACT[_layer] = type(_name, (InDouble, _layer), {"plain": _layer.forward})
    EXACT[_layer].__module__ = __name__
    globals()[_name] = EXACT[_layer]
QUANTISED: dict[type, type] = {nn.Conv2D: PactConv2D, nn.Linear: PactLinear}


def exact(layer: Any) -> Any:
    """Return the exact form of a layer that has one, sharing its weights; else the layer."""
    form = EXACT.get(type(layer))
    if form is None:
        return layer
    made = copy.copy(layer)
    made.__class__ = form
    return made


class _Exact:
    """What ``paddle.quantization`` calls to replace a layer: not a class to make objects of."""

    def __new__(cls, layer: Any, config: Any) -> Any:
        activation = config.activation
        ours = activation is not None and issubclass(activation._get_class(), PactQuanter)
        return exact(layer) if ours else layer


def register() -> None:
    """Make Paddle's quantisation use these layers, which behave as its own with other quanters."""
    mapping = paddle_config.DEFAULT_QAT_LAYER_MAPPINGS
    mapping.update(QUANTISED)
    for source in EXACT:
        mapping.setdefault(source, type(f"_Exact{source.__name__}", (_Exact,), {}))


def unwrapped(model: Any) -> Any:
    """Take Paddle's wrappers off the layers that are not quantised, in place; return the model."""
    for name, child in list(model.named_children()):
        observer = getattr(child, "_observer", None)
        if isinstance(observer, PassThrough) and hasattr(child, "_observed"):
            model._sub_layers[name] = child._observed
        else:
            unwrapped(child)
    return model
