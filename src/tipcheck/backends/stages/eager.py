"""The layer itself, op by op, as it ran while it was trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tipcheck.backends.stages import Place, StageKind, register

if TYPE_CHECKING:
    from tipcheck.backends.layers.calls import LayerCall


def start(place: Place) -> LayerCall:
    """Make the layer."""
    from tipcheck.backends.layers.source import start_layer

    return start_layer(place, static=False)


register(StageKind("eager", start, from_layer=True))
