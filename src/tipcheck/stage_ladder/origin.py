"""Where a fault began, when it is so small that the rung it began on only just passed.

A fault of a few noise floors stays with all rungs above it, each of which adds its own rounding; so
the first rung beyond the limit need not be the first that has the fault. That rung differs from
the bottom, and hardly from the one below it: then the one below has the fault already.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tipcheck.compare.verdict import Status
from tipcheck.stage_ladder.factors import NOISE_FACTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcheck.stage_ladder.rung import Rung

_INHERITED = 0.6
"""Share of the distance to the bottom below which the distance to the rung below is rounding."""


def blame_the_origin(rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    """Return the rungs, with one that only just passed made suspect where a fault began on it."""
    first = next((rung for rung in rungs if rung.status is not Status.PASS and rung.bottom), None)
    if first is None or not _is_matter_of_size(first):
        return tuple(rungs)
    by_name = {rung.stage: rung for rung in rungs}
    origin = first
    while (lower := _inherits_from(origin, by_name)) is not None:
        origin = lower
    if origin is first or origin.bottom is None:
        return tuple(rungs)
    told = f"{origin.bottom.times_noise:.3g} times the noise already, and more at {first.stage}"
    guilty = replace(origin, status=Status.SUSPECT, reason=told)
    return tuple(guilty if rung is origin else rung for rung in rungs)


def _is_matter_of_size(rung: Rung) -> bool:
    """Whether a rung is not good because numbers are further off than noise explains."""
    against = rung.bottom
    return (
        against is not None
        and rung.status in (Status.SUSPECT, Status.FAIL)
        and against.rule in ("noise", "budget")
        and rung.reason == against.reason
        and (against.times_noise or 0.0) > NOISE_FACTOR / 2
    )


def _inherits_from(rung: Rung, by_name: dict[str, Rung]) -> Rung | None:
    """Return the rung below where that has the same fault; None where this one brought it in."""
    below, bottom = rung.below, rung.bottom
    if below is None or bottom is None or below.stage == bottom.stage:
        return None
    near, far = below.times_noise, bottom.times_noise
    lower = by_name.get(below.stage)
    if near is None or far is None or lower is None or lower.status is not Status.PASS:
        return None
    if below.status is not Status.PASS or near > _INHERITED * far:
        return None
    return lower
