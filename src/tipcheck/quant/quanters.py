"""What is learnt and what is rounded: the quanters that ``paddle.quantization`` puts into layers.

An activation is clipped to a learnable value and rounded (PACT, Choi et al. 2018); a weight is
rounded on a grid of its own for every output channel. Both keep the integers apart from the scale,
because sums of integers are the same on every engine, and sums of rounded floats are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import paddle
from paddle.nn.initializer import Constant
from paddle.quantization import BaseQuanter
from paddle.quantization.factory import QuanterFactory

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_CLIP = 6.0
DEFAULT_DECAY = 1e-4
BITS = range(2, 9)
_SMALLEST_CLIP = 1e-6


def levels(bits: int, *, signed: bool) -> int:
    """Return the largest integer of a grid: 255 and 127 for 8 bits."""
    return int(2 ** (bits - 1) - 1 if signed else 2**bits - 1)


def check_bits(bits: int) -> int:
    """Return a width that can be used.

    Raises:
        UsageError: it cannot.
    """
    if bits not in BITS:
        raise UsageError(
            f"bits={bits} cannot be quantised to", hint=f"choose from {BITS[0]} to {BITS[-1]} bits"
        )
    return bits


class PassThrough(BaseQuanter):  # type: ignore[misc]  # Paddle has no types
    """Stands where Paddle asks for a quanter and nothing is to be quantised."""

    def forward(self, *inputs: Any, **_: Any) -> Any:
        """Return what came in."""
        return inputs[0] if len(inputs) == 1 else inputs

    def scales(self) -> None:
        """Return nothing: there is no grid."""

    def zero_points(self) -> None:
        """Return nothing: there is no grid."""

    def quant_axis(self) -> int:
        """Return that of a whole tensor."""
        return -1

    def bit_length(self) -> int:
        """Return a width that nothing reads."""
        return 8


class _OwnSave(BaseQuanter):  # type: ignore[misc]  # Paddle has no types
    """Refuses Paddle's own ``convert``, whose models oneDNN's int8 runs wrong without a word."""

    bits: Any

    def scales(self) -> Any:
        raise UsageError(
            "Paddle's convert() makes models that oneDNN int8 runs wrong",
            hint="use tipcheck.quant.save(model, path, input_spec) on the quantised model",
        )

    zero_points = scales

    def bit_length(self) -> int:
        """Return the width of the grid."""
        return round(float(self.bits.item()))


class PactQuanter(_OwnSave):
    """Clips an activation to a learnable value and rounds it to that value's grid.

    For data that is never negative the grid is PACT's: ``2**bits - 1`` steps from 0 to the clipping
    value. Data with a negative value in it gets ``2**(bits-1) - 1`` steps to either side, clipped
    at plus and minus the same value; its gradient is then the paper's, counted on both sides.

    State: ``clip`` (learnt), ``negative`` (1 once a negative value was seen), ``bits``.
    """

    def __init__(
        self,
        layer: Any,
        *,
        bits: int,
        initial_clip: float,
        per_channel: bool,
        signed: bool | None,
    ) -> None:
        super().__init__()
        channels, axis = input_channels(layer)
        self._shape = [channels if per_channel else 1]
        self._axis = axis
        self._fixed = signed is not None
        self.observer: Any = None
        self.decay = DEFAULT_DECAY
        self.clip = self.create_parameter(
            self._shape, default_initializer=Constant(float(initial_clip))
        )
        self.register_buffer("negative", paddle.full([1], float(bool(signed)), "float32"))
        self.register_buffer("bits", paddle.full([1], float(bits), "float32"))

    def clip_of(self, tensor: Any) -> Any:
        """Return the clipping value in a shape that broadcasts to a tensor."""
        clip = paddle.maximum(self.clip, paddle.full([1], _SMALLEST_CLIP, "float32"))
        if self._shape == [1]:
            return clip
        shape = [1] * len(tensor.shape)
        shape[self._axis] = self._shape[0]
        return clip.reshape(shape)

    def steps(self) -> Any:
        """Return how many steps of the grid the clipping value is, as a tensor."""
        signed = (self.negative > 0).astype("float32")
        unsigned_steps = paddle.pow(paddle.full([1], 2.0), self.bits)
        return (unsigned_steps - 1) * (1 - signed) + (unsigned_steps / 2 - 1) * signed

    def forward(self, x: Any) -> Any:
        """Return the clipped and rounded activation, with PACT's gradients."""
        given = x.dtype
        x = x if given == paddle.float32 else x.cast("float32")  # mixed precision
        if self.training and not self._fixed:
            seen = (x.detach().min() < 0).astype("float32").reshape([1])
            _write(paddle.maximum(self.negative, seen), self.negative)
        clip = self.clip_of(x)
        signed = (self.negative > 0).astype("float32").detach()
        low = -clip * signed
        # Not minimum(): at the clipping value itself the paper gives the gradient to that.
        clipped = paddle.where(x < clip, x, clip)
        clipped = paddle.where(clipped > low, clipped, low)
        with paddle.no_grad():
            scale = clip / self.steps()
            rounded = paddle.round(clipped / scale) * scale - clipped
        out = clipped + rounded.detach()
        return out if given == paddle.float32 else out.cast(given)

    def integers(self, x: Any) -> Any:
        """Return the place of every value on the grid: whole numbers, as floats."""
        steps = self.steps()
        signed = (self.negative > 0).astype("float32")
        # Not round(): oneDNN's takes fifty times as long as the convolution that follows.
        places = paddle.floor(x * (steps / self.clip_of(x)) + 0.5)
        return paddle.maximum(paddle.minimum(places, steps), -steps * signed)

    def step(self) -> Any:
        """Return the distance of two neighbours of the grid: one number, or one per channel."""
        return paddle.maximum(self.clip, paddle.full([1], _SMALLEST_CLIP)) / self.steps()

    @property
    def per_channel(self) -> bool:
        """Whether every channel has a clipping value of its own."""
        return bool(self._shape != [1])

    @property
    def signed(self) -> bool:
        """Whether the grid reaches below zero."""
        return bool(float(self.negative.item()) > 0)

    def decide_sign(self, *, negative: bool) -> None:
        """Set whether the grid reaches below zero, unless that was chosen."""
        if not self._fixed:
            self.negative.set_value(paddle.full([1], float(negative), "float32"))

    def quant_axis(self) -> int:
        """Return the axis of the clipping values."""
        return self._axis if self.per_channel else -1


def _write(value: Any, buffer: Any) -> None:
    """Set a buffer, in dygraph and in both kinds of graph."""
    if paddle.in_dynamic_mode() or paddle.framework.in_pir_mode():
        paddle._C_ops.assign_out_(value, buffer)
    else:
        paddle.assign(value, output=buffer)


class WeightQuanter(_OwnSave):
    """Rounds a weight to a symmetric grid whose last step is its largest absolute value.

    State: ``bits`` and ``channels`` (1: a grid for every output channel).
    """

    def __init__(self, layer: Any, *, bits: int, per_channel: bool) -> None:
        super().__init__()
        self._axis = (0 if len(layer.weight.shape) > 2 else 1) if per_channel else -1
        self.register_buffer("bits", paddle.full([1], float(bits), "float32"))
        self.register_buffer("channels", paddle.full([1], float(per_channel), "float32"))

    def step(self, weight: Any) -> Any:
        """Return the distance of two neighbours of the grid, in a shape that broadcasts."""
        axes = [axis for axis in range(len(weight.shape)) if axis != self._axis]
        largest = weight.detach().abs().max(axis=axes, keepdim=True)
        steps = paddle.pow(paddle.full([1], 2.0), self.bits - 1) - 1
        return paddle.where(largest > 0, largest / steps, paddle.ones_like(largest))

    def integers(self, weight: Any) -> Any:
        """Return the place of every value on the grid: whole numbers, as floats."""
        return paddle.round(weight / self.step(weight))

    def forward(self, weight: Any) -> Any:
        """Return the rounded weight; its gradient goes straight through."""
        with paddle.no_grad():
            rounded = self.integers(weight) * self.step(weight) - weight
        return weight + rounded.detach()

    def quant_axis(self) -> int:
        """Return the axis of the output channels, or -1 for one grid."""
        return self._axis


class _Factory(QuanterFactory):  # type: ignore[misc]  # Paddle has no types
    """Makes the quanters of a model, one for every layer that Paddle asks for."""


class PACT(_Factory):
    """Learnable clipping for activations: ``QuantConfig(activation=PACT(), weight=...)``.

    Convolutions and linear layers are quantised at their input; every other layer stays as it is.
    """

    def __init__(
        self,
        bits: int = 8,
        *,
        initial_clip: float = DEFAULT_CLIP,
        per_channel: bool = False,
        signed: bool | None = None,
    ) -> None:
        """Choose the grid.

        Args:
            bits: width, 2 to 8.
            initial_clip: where the clipping values start. They are trained only where something is
                clipped: start low, or let ``calibrate`` choose from data.
            per_channel: a clipping value for every input channel instead of one for the layer.
            signed: whether activations can be negative; by default that is seen from the data of
                the training or of ``calibrate``.
        """
        if not initial_clip > 0:
            raise UsageError(
                f"initial_clip={initial_clip} is not above 0", hint="start at 1 to 10, for example"
            )
        super().__init__(
            bits=check_bits(bits),
            initial_clip=float(initial_clip),
            per_channel=per_channel,
            signed=signed,
        )
        register_layers()

    def _get_class(self) -> type[PactQuanter]:
        return PactQuanter

    def _instance(self, layer: Any) -> Any:
        if not is_quantisable(layer):
            return PassThrough()
        return super()._instance(layer)


class ChannelWeight(_Factory):
    """Rounded weights for ``QuantConfig(activation=..., weight=ChannelWeight())``."""

    def __init__(self, bits: int = 8, *, per_channel: bool = True) -> None:
        """Choose the grid.

        Args:
            bits: width, 2 to 8.
            per_channel: a grid for every output channel instead of one for the weight.
        """
        super().__init__(bits=check_bits(bits), per_channel=per_channel)
        register_layers()

    def _get_class(self) -> type[WeightQuanter]:
        return WeightQuanter


def register_layers() -> None:
    """Make Paddle's quantisation use the layers of this package for these quanters."""
    from tipcheck.quant.layers import register  # noqa: PLC0415 - they build on this module

    register()


def is_quantisable(layer: Any) -> bool:
    """Whether a layer is one whose input is quantised."""
    return isinstance(layer, paddle.nn.Conv2D | paddle.nn.Linear)


def input_channels(layer: Any) -> tuple[int, int]:
    """Return how many input channels a layer has, and which axis of its input they are on."""
    if isinstance(layer, paddle.nn.Conv2D):
        return int(layer._in_channels), (1 if layer._data_format == "NCHW" else 3)
    return int(layer.weight.shape[0]), -1


def pact_quanters(model: Any) -> Sequence[tuple[str, PactQuanter]]:
    """Return the activation quanters of a model, with their names."""
    return [(n, layer) for n, layer in model.named_sublayers() if isinstance(layer, PactQuanter)]
