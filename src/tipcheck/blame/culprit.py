"""Who broke the answers: the contract between ``blame`` and whoever reads its findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class CulpritKind(str, Enum):
    """What a culprit is."""

    OP = "op"
    PASS = "pass"  # noqa: S105 - an optimisation pass
    SET = "set"
    """Several ops or passes that break the result only together."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """What is to blame, with the evidence that removing it repairs the result.

    Attributes:
        kind: an op, a pass, or a set of them.
        members: names of the ops or passes.
        evidence: what was tried and what it showed.
        repairs: whether the result was right once the members were taken out.
        cost: slowdown of taking them out, 1.0 meaning none; None where it was not measured.
    """

    schema: ClassVar[str] = "tipcheck.culprit/1"

    kind: CulpritKind
    members: tuple[str, ...]
    evidence: str
    repairs: bool
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Bundle:
    """A folder that reproduces one failure without tipcheck.

    Attributes:
        folder: where it is.
        command: what to type inside it.
        files: everything in it.
    """

    schema: ClassVar[str] = "tipcheck.bundle/1"

    folder: str
    command: str
    files: tuple[str, ...]
