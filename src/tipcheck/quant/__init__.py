"""Gives a layer back as the same layer, quantised the PACT way, and exports it.

Comes in: a Paddle layer, and a ``QuantScheme`` or ``paddle.quantization``'s own ``QuantConfig``.
Goes out: the same layer with learnable clipping on its activations and rounded weights; an exported
model that computes the same on every engine.
May import: paddle.

    from paddle.quantization import QAT, QuantConfig
    from tipcheck.quant import PACT, ChannelWeight, calibrate, clip_penalty, save

    model = QAT(QuantConfig(activation=PACT(), weight=ChannelWeight())).quantize(model)
    calibrate(model, batches)                       # clipping values from data; optional
    loss = loss + clip_penalty(model)               # in the training loop
    save(model, "out/inference", [image])           # .json or .pdmodel, verified

``quantise(model)`` is the first line in short. ``is_quantised(state)`` tells whether a state dict
is that of such a model, ``rebuild(model, state)`` makes the model again from it.

Names are imported when they are asked for: the contract is read without Paddle.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tipcheck.quant.scheme import QuantScheme

if TYPE_CHECKING:
    from tipcheck.quant.calibration import calibrate as calibrate
    from tipcheck.quant.checkpoint import is_quantised as is_quantised
    from tipcheck.quant.checkpoint import quantise as quantise
    from tipcheck.quant.checkpoint import rebuild as rebuild
    from tipcheck.quant.deploy import convert as convert
    from tipcheck.quant.quanters import PACT as PACT
    from tipcheck.quant.quanters import ChannelWeight as ChannelWeight
    from tipcheck.quant.regularise import clip_penalty as clip_penalty
    from tipcheck.quant.regularise import clips as clips
    from tipcheck.quant.saving import save as save

_HOMES = {
    "PACT": "quanters",
    "ChannelWeight": "quanters",
    "calibrate": "calibration",
    "clip_penalty": "regularise",
    "clips": "regularise",
    "convert": "deploy",
    "is_quantised": "checkpoint",
    "quantise": "checkpoint",
    "rebuild": "checkpoint",
    "save": "saving",
}

__all__ = ["QuantScheme", *sorted(_HOMES)]  # noqa: PLE0604 - all of them are texts


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
