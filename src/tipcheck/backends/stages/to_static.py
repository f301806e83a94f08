"""The layer as one traced program, in the process that traced it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tipcheck.backends.stages import Place, StageKind, register

if TYPE_CHECKING:
    from tipcheck.backends.layers.calls import LayerCall


def start(place: Place) -> LayerCall:
    """Make the layer and convert it."""
    from tipcheck.backends.layers.source import start_layer

    return start_layer(place, static=True)


register(StageKind("to_static", start, from_layer=True))
