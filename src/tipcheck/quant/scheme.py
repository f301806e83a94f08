"""How a layer is to be quantised: the contract between ``quant`` and the code that trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class QuantScheme:
    """The choices of a quantisation-aware training.

    Attributes:
        activation_bits: width of activations.
        weight_bits: width of weights.
        activation_per_channel: a clipping value for every input channel instead of one per layer.
        weight_per_channel: one scale per output channel instead of one per tensor.
        initial_clip: where the learnable clipping value of an activation starts; it has to be low
            enough that some activations are clipped, or it never receives a gradient.
        clip_decay: weight of the L2 term on the clipping values.
    """

    schema: ClassVar[str] = "tipcheck.quant-scheme/1"

    activation_bits: int = 8
    weight_bits: int = 8
    activation_per_channel: bool = False
    weight_per_channel: bool = True
    initial_clip: float = 6.0
    clip_decay: float = 1e-4
