"""The L2 term on the clipping values, which keeps them from growing with rare outliers."""

from __future__ import annotations

from typing import Any

import paddle

from tipcheck.errors import UsageError
from tipcheck.quant.quanters import pact_quanters


def clip_penalty(model: Any, decay: float | None = None) -> Any:
    """Return ``decay`` times the sum of all squared clipping values, to be added to the loss.

    Without ``decay`` it is that of the ``QuantScheme`` the model was quantised with, else 1e-4.

    An optimiser's ``weight_decay`` reaches the clipping values as well, as they are parameters. Use
    this term without one, or to weigh them apart.

    Raises:
        UsageError: the model has no clipping values.
    """
    quanters = pact_quanters(model)
    if not quanters:
        raise UsageError(
            "the model has no clipping values",
            hint="quantise it first: tipcheck.quant.quantise(model)",
        )
    terms = [
        (quanter.decay if decay is None else decay) * (quanter.clip**2).sum()
        for _, quanter in quanters
    ]
    return paddle.add_n(terms)


def clips(model: Any) -> dict[str, list[float]]:
    """Return the clipping values of a model by layer, for a log or a look."""
    return {
        name.removesuffix(".activation_quanter"): [float(value) for value in quanter.clip.numpy()]
        for name, quanter in pact_quanters(model)
    }
