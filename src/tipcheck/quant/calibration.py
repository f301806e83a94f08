"""Chooses clipping values from sample data: post-training quantisation, or the start of a training.

While data is seen the model computes in floats, as if it were not quantised; afterwards every layer
that was reached has a clipping value and knows whether its input can be negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import paddle

from tipcheck.errors import UsageError
from tipcheck.quant.eager import eager
from tipcheck.quant.quanters import levels, pact_quanters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tipcheck.quant.quanters import PactQuanter

METHODS = ("kl", "abs_max", "quantile")
_BINS = 2048
_BINS_PER_CHANNEL = 512
_STRIDE = 8
_QUANTILE = 0.999


class Histogram:
    """The absolute values of a tensor seen in parts; its range doubles as larger ones come."""

    def __init__(self, bins: int = _BINS) -> None:
        self.counts = np.zeros(bins)
        self.top = 0.0
        self.largest = 0.0

    def add(self, values: np.ndarray[Any, Any]) -> None:
        """Count some absolute values."""
        self.largest = max(self.largest, float(values.max(initial=0.0)))
        if self.top == 0.0:
            self.top = self.largest
        while self.largest > self.top:
            self.counts = _halved(self.counts)
            self.top *= 2
        if self.top > 0.0:
            self.counts += np.histogram(values, len(self.counts), (0.0, self.top))[0]

    def quantile(self, part: float) -> float:
        """Return the value that this part of all lies below."""
        reached = np.searchsorted(np.cumsum(self.counts), part * self.counts.sum())
        bins = len(self.counts)
        return float((min(int(reached), bins - 1) + 1) * self.top / bins)

    def kl_threshold(self, steps: int) -> float:
        """Return where to clip so that rounding to a grid loses least, by relative entropy."""
        bins = len(self.counts)
        tops = range(bins, steps - 1, -_STRIDE)
        losses = [self._relative_entropy(top, steps) for top in tops]
        return float(tops[int(np.argmin(losses))] * self.top / bins)

    def _relative_entropy(self, top: int, steps: int) -> float:
        inside = self.counts[:top]
        clipped = inside.copy()
        clipped[-1] += self.counts[top:].sum()
        group = np.minimum(np.arange(top) * steps // top, steps - 1)
        used = inside > 0
        total = np.bincount(group, inside, steps)
        members = np.bincount(group, used, steps)
        spread = np.where(used, (total / np.maximum(members, 1))[group], 0.0)
        if not spread.any():
            return float("inf")
        p, q = clipped / clipped.sum(), spread / spread.sum()
        seen = p > 0
        return float(np.sum(p[seen] * np.log(p[seen] / np.maximum(q[seen], 1e-12))))


def _halved(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the counts of a range that is twice as wide."""
    return np.concatenate([counts.reshape(-1, 2).sum(1), np.zeros(len(counts) // 2)])


class Observer:
    """What one layer's input was like."""

    def __init__(self, quanter: PactQuanter) -> None:
        self._axis = quanter.quant_axis() if quanter.per_channel else None
        channels = quanter.clip.shape[0]
        bins = _BINS_PER_CHANNEL if quanter.per_channel else _BINS
        self._histograms = [Histogram(bins) for _ in range(channels)]
        self.negative = False
        self.reached = False

    def see(self, x: Any) -> None:
        """Count the values of one batch."""
        values = x.detach().cast("float32").numpy()
        if not np.isfinite(values).all():
            raise UsageError(
                "a value that is not finite reached a quantised layer in the calibration",
                hint="look at the sample data, and at the weights",
            )
        self.reached = True
        self.negative = self.negative or bool((values < 0).any())
        values = np.abs(values)
        if self._axis is None:
            self._histograms[0].add(values.ravel())
            return
        for channel, histogram in enumerate(self._histograms):
            histogram.add(values.take(channel, axis=self._axis).ravel())

    def clips(self, method: str, steps: int) -> np.ndarray[Any, Any]:
        """Return the clipping values that a method chooses for so many steps."""
        chosen = []
        for histogram in self._histograms:
            clip = histogram.largest
            if method == "kl" and clip > 0:
                clip = min(clip, histogram.kl_threshold(steps))
            elif method == "quantile" and clip > 0:
                clip = min(clip, histogram.quantile(_QUANTILE))
            chosen.append(clip)
        largest = max(chosen) or 1.0
        return np.asarray([clip or largest for clip in chosen], "float32")


def calibrate(
    model: Any,
    batches: Iterable[Any],
    method: str = "kl",
    *,
    forward: Callable[[Any], Any] | None = None,
) -> dict[str, list[float]]:
    """Set the clipping values of a quantised model from sample data, in place.

    Args:
        model: a quantised model; it is run in evaluation mode, and put back.
        batches: what the model is called with, one item after the other: a tensor or array, or a
            tuple of them when it takes several.
        method: ``kl`` loses least by relative entropy, ``abs_max`` clips nothing of what was seen,
            ``quantile`` clips the largest 0.1 %, which is a good start for a training.
        forward: called with an item instead of the model.

    Returns:
        The new clipping values by layer.

    Raises:
        UsageError: no such method, no data, or a model that is not quantised.
    """
    if method not in METHODS:
        raise UsageError(f"no method {method!r}", hint=f"choose from {', '.join(METHODS)}")
    quanters = pact_quanters(model)
    if not quanters:
        raise UsageError(
            "the model has no clipping values to calibrate",
            hint="quantise it first: tipcheck.quant.quantise(model)",
        )
    training = model.training
    model.eval()
    for _, quanter in quanters:
        quanter.observer = Observer(quanter)
    try:
        with eager():
            for item in batches:
                forward(item) if forward else model(*_arguments(item))
        return {
            name.removesuffix(".activation_quanter"): _set(quanter, method)
            for name, quanter in quanters
            if quanter.observer.reached
        } or _no_data()
    finally:
        for _, quanter in quanters:
            quanter.observer = None
        if training:
            model.train()


def _arguments(item: Any) -> list[Any]:
    parts = item if isinstance(item, tuple | list) else [item]
    return [part if isinstance(part, paddle.Tensor) else paddle.to_tensor(part) for part in parts]


def _set(quanter: PactQuanter, method: str) -> list[float]:
    observer: Observer = quanter.observer
    quanter.decide_sign(negative=observer.negative)
    clips = observer.clips(method, levels(quanter.bit_length(), signed=quanter.signed))
    quanter.clip.set_value(clips)
    return [float(clip) for clip in clips]


def _no_data() -> dict[str, list[float]]:
    raise UsageError(
        "the calibration reached no quantised layer", hint="give it at least one batch of samples"
    )
