"""How far above the measured noise of a model a difference may lie before a rung is SUSPECT."""

from __future__ import annotations

NOISE_FACTOR = 6.0
"""A full-precision rung whose difference is more than this many noise floors is SUSPECT."""

WORST_FACTOR = 8.0
"""The same for the worst element, in units of the worst rounding."""
