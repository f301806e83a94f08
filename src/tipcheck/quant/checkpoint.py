"""Quantises a model as a whole, and does so again from a checkpoint that says it was quantised.

A state dict carries all that is needed: which layers have quanters, their widths, and what they
learnt. So an exporter needs no flag to know what it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddle.quantization import QAT, QuantConfig

from tipcheck.errors import UsageError
from tipcheck.quant.layers import QUANTISED, exact, unwrapped
from tipcheck.quant.quanters import PACT, ChannelWeight, is_quantisable, pact_quanters
from tipcheck.quant.scheme import QuantScheme

if TYPE_CHECKING:
    from collections.abc import Mapping

_ACTIVATION = ".activation_quanter."
_WEIGHT = ".weight_quanter."
_OBSERVED = "_observed."


class _Choice:
    """The pair of factories that a layer is built with, in the form its constructor reads."""

    def __init__(self, activation: PACT | None, weight: ChannelWeight | None) -> None:
        self.activation = activation
        self.weight = weight


def quantise(model: Any, scheme: QuantScheme | None = None, *, inplace: bool = False) -> Any:
    """Return a model ready for quantisation-aware training: Paddle's ``QAT`` with these quanters.

    Args:
        model: any layer. It has to be in training mode, as for ``QAT``; what it is not is put back.
        scheme: widths and clipping; the default is 8 bits.
        inplace: change the model instead of a copy.
    """
    scheme = scheme or QuantScheme()
    config = QuantConfig(
        activation=PACT(
            scheme.activation_bits,
            initial_clip=scheme.initial_clip,
            per_channel=scheme.activation_per_channel,
        ),
        weight=ChannelWeight(scheme.weight_bits, per_channel=scheme.weight_per_channel),
    )
    training = model.training
    model.train()
    made = unwrapped(QAT(config).quantize(model, inplace=inplace))
    for _, quanter in pact_quanters(made):
        quanter.decay = scheme.clip_decay
    model.train() if training else model.eval()
    made.train() if training else made.eval()
    return made


def is_quantised(state: Mapping[str, Any]) -> bool:
    """Whether a state dict is that of a model quantised by this package."""
    return any(key.endswith((_ACTIVATION + "clip", _WEIGHT + "bits")) for key in state)


def rebuild(model: Any, state: Mapping[str, Any]) -> Any:
    """Quantise a float model as the one whose state dict this is, and load the state into it.

    Args:
        model: the model as it was before it was quantised, weights of no matter; changed in place.
        state: what ``state_dict()`` of the quantised model gave, or ``paddle.load`` read.

    Raises:
        UsageError: the state is not that of this model, or not quantised.
    """
    if not is_quantised(state):
        raise UsageError(
            "the checkpoint is not that of a quantised model",
            hint="load it into the model itself: model.set_state_dict(...)",
        )
    state = {key.replace(_OBSERVED, ""): value for key, value in state.items()}
    _replace(model, "", state)
    wanted = {key: list(value.shape) for key, value in model.state_dict().items()}
    given = {key: list(value.shape) for key, value in state.items() if hasattr(value, "shape")}
    if wanted != given:
        odd = sorted(
            key for key in wanted.keys() | given.keys() if wanted.get(key) != given.get(key)
        )
        raise UsageError(
            f"the checkpoint is that of another model: {len(odd)} of {len(wanted)} entries differ, "
            f"the first is {odd[0]}",
            hint="build the model that was trained",
        )
    model.set_state_dict(state)
    return model


def _replace(model: Any, prefix: str, state: Mapping[str, Any]) -> None:
    for name, child in list(model.named_children()):
        path = prefix + name
        choice = _choice(path, state)
        if is_quantisable(child) and type(child) in QUANTISED:
            if choice is not None:
                model._sub_layers[name] = QUANTISED[type(child)](child, choice)
        elif exact(child) is not child:
            model._sub_layers[name] = exact(child)
        else:
            _replace(child, path + ".", state)


def _choice(path: str, state: Mapping[str, Any]) -> _Choice | None:
    activation = weight = None
    clip = state.get(path + _ACTIVATION + "clip")
    if clip is not None:
        activation = PACT(
            _number(state, path + _ACTIVATION + "bits"), per_channel=clip.shape[0] != 1
        )
    if path + _WEIGHT + "bits" in state:
        channels = _number(state, path + _WEIGHT + "channels")
        weight = ChannelWeight(_number(state, path + _WEIGHT + "bits"), per_channel=bool(channels))
    return _Choice(activation, weight) if activation or weight else None


def _number(state: Mapping[str, Any], key: str) -> int:
    if key not in state:
        raise UsageError(f"the checkpoint lacks {key}", hint="save the whole state_dict()")
    return round(float(state[key].item() if hasattr(state[key], "item") else state[key]))
