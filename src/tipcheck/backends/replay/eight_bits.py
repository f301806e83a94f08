"""To 8 bits and back, computed in numpy: Paddle's own kernels for it do not run in a piece.

A quantised export goes through ``quantize_linear`` and ``dequantize_linear`` before every product.
The static executor has no kernel for either, so a piece that contains one is cut there: what goes
in is computed, then this, then the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Array = npt.NDArray[Any]

QUANTIZE, DEQUANTIZE = "pd_op.quantize_linear", "pd_op.dequantize_linear"
OPS = (QUANTIZE, DEQUANTIZE)

_TIES_TO_EVEN = 0


def through(kind: str, values: Array, scale: Array, attributes: Mapping[str, Any]) -> Array:
    """Return what one of the two ops makes of some values, in float64.

    Args:
        kind: which of them.
        values: what goes in.
        scale: the largest value of each channel, or of all of them.
        attributes: of the op: ``qmin`` and ``qmax`` or else ``bit_length``, ``quant_axis`` (-1 for
            one scale) and ``round_type``.
    """
    steps = float(attributes.get("qmax") or (1 << (int(attributes.get("bit_length", 8)) - 1)) - 1)
    least = float(attributes.get("qmin") or -steps - 1)
    limit = _along(scale, int(attributes.get("quant_axis", -1)), values.ndim)
    wide = np.asarray(values, np.float64)
    if kind == DEQUANTIZE:
        return np.asarray(wide * limit / steps)
    scaled = wide * steps / limit
    if int(attributes.get("round_type", _TIES_TO_EVEN)) == _TIES_TO_EVEN:
        return np.clip(np.rint(scaled), least, steps)
    away = np.trunc(scaled + np.copysign(0.5, scaled))
    return np.asarray(np.clip(away, least, steps))


def _along(scale: Array, axis: int, axes: int) -> Array:
    wide = np.asarray(scale, np.float64).reshape(-1)
    if axis < 0 or wide.size == 1:
        return wide[:1].reshape(())
    shape = [1] * axes
    shape[axis] = wide.size
    return wide.reshape(shape)
