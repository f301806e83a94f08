"""Which tensor of one program is the same mathematical value as which of another: the words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class Match(str, Enum):
    """How two tensors were found to be the same mathematical value."""

    INPUT = "model input"
    OUTPUT = "model output"
    SAME_OP = "same op"
    """The same op on both sides, with matched operands and equal attributes."""
    FUSED = "fused op"
    """An op that does the work of several, which are those between the matched tensors."""
    MOVED = "values only moved"
    """A cast, copy or change of layout: the same numbers as the tensor it is made from."""
    CONSUMER = "same consumer"
    """What is made from it is matched, and takes it at this place."""
    VALUES = "values decide a tie"
    """Several tensors fit by structure; the values chose among these only."""
    NAME = "stable name"
    """Only where the caller asked for matching by name."""
    NONE = ""


class Reason(str, Enum):
    """Why a tensor has no partner; a closed list."""

    FUSED_AWAY = "fused away"
    CONSTANT_FOLDED = "constant folded"
    LAYOUT = "layout conversion"
    DEAD = "not used by any output"
    INTERNAL = "exists on this side only"
    """A by-product that one side's form of an op has and the other's has not."""
    NOT_FLOATING = "not floating point"
    UNKNOWN = "unknown"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Pairing:
    """One tensor of the candidate, or one of the baseline that has no partner.

    Attributes:
        candidate: its id in the candidate's graph; None for an unmatched one of the baseline.
        baseline: its id in the baseline's graph; None where it has no partner.
        match: how the two were matched; ``Match.NONE`` without a partner.
        reason: why there is no partner.
        note: the proof in words: what it was fused into and by which pass.
        covers: indices of the baseline's ops whose work the candidate's op does: what to replay
            (in this order) to compute it from ``inputs`` independently. Empty without a partner.
        inputs: pairs (candidate's value, baseline's value) at the border of ``covers``; parameters
            are not among them.
        permutation: axes to transpose the baseline's value by to get the candidate's axis order;
            empty where the order is the same.
    """

    candidate: int | None
    baseline: int | None
    match: Match = Match.NONE
    reason: Reason = Reason.NONE
    note: str = ""
    covers: tuple[int, ...] = ()
    inputs: tuple[tuple[int, int], ...] = ()
    permutation: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Alignment:
    """All pairings: the candidate's in op order, then the baseline's that are left over."""

    schema: ClassVar[str] = "tipcheck.alignment/1"

    pairings: tuple[Pairing, ...]

    @property
    def partners(self) -> dict[int, int]:
        """The baseline's value for each matched value of the candidate."""
        return {
            pairing.candidate: pairing.baseline
            for pairing in self.pairings
            if pairing.candidate is not None and pairing.baseline is not None
        }
