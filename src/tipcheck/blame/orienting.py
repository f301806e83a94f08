"""Says of every pair of tensors by what turn the axes of the one become those of the other.

Alignment knows which values are the same; here the layout comes in, that Paddle gave the baseline
on its own account. A turn is believed only where the shapes do not fit without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tipcheck.backends.graphs.orientation import orientations
from tipcheck.blame.alignment import Alignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcheck.backends.graph import Graph
    from tipcheck.blame.alignment import Pairing


def oriented(alignment: Alignment, baseline: Graph, candidate: Graph) -> Alignment:
    """Return the same pairings, with the axes to turn the baseline's values by."""
    turned = orientations(baseline)
    return Alignment(
        tuple(_pairing(pairing, turned, baseline, candidate) for pairing in alignment.pairings)
    )


def _pairing(
    pairing: Pairing, turned: dict[int, tuple[int, ...]], baseline: Graph, candidate: Graph
) -> Pairing:
    if pairing.candidate is None or pairing.baseline not in turned or pairing.permutation:
        return pairing
    axes = turned[pairing.baseline]
    back = tuple(axes.index(axis) for axis in range(len(axes)))
    ours, theirs = (
        candidate.values[pairing.candidate].shape,
        baseline.values[pairing.baseline].shape,
    )
    straight = tuple(theirs[axis] for axis in back)
    certain = ours == straight and ours != theirs
    if certain or (_agree(straight, ours) and not _agree(theirs, ours)):
        return replace(pairing, permutation=back)
    return pairing


def _agree(one: Sequence[int], other: Sequence[int]) -> bool:
    return len(one) == len(other) and all(
        -1 in (left, right) or left == right for left, right in zip(one, other, strict=True)
    )
