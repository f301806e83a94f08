"""Which stages are climbed, in which order, and why some of them cannot run here."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcheck.backends.catalogue import STAGES, Way
from tipcheck.backends.stages import StageKind, stage_kinds
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcheck.backends.exports.program import Program
    from tipcheck.backends.subject import Subject


@dataclass(frozen=True, slots=True)
class Lined:
    """One stage in its place.

    Attributes:
        way: its row in the catalogue.
        kind: how it runs.
        changed: what it changes.
        refused: why this model cannot run this way, whatever the machine; empty when it can.
    """

    way: Way
    kind: StageKind
    changed: str
    refused: str = ""


def line_up(subject: Subject, program: Program | None, asked: Sequence[str]) -> list[Lined]:
    """Return the stages from the bottom up.

    Args:
        subject: what is verified.
        program: its export, None without one.
        asked: names of stages; all of the catalogue when empty.

    Raises:
        UsageError: a name is no stage.
    """
    kinds = stage_kinds()
    check_names(asked)
    recorded = {item.stage for item in subject.recorded}
    lined = []
    for way in STAGES:
        if asked and way.name not in asked:
            continue
        kind = kinds[way.name]
        if kind.from_layer and not asked and not subject.source and way.name not in recorded:
            continue  # an exported file has no layer: the ladder starts above
        refused = _refused(kind, subject, program, recorded)
        lined.append(Lined(way, kind, way.what, refused))
    return lined


def check_names(asked: Sequence[str]) -> None:
    """Refuse what is no stage.

    Raises:
        UsageError: a name is no stage; the message has the nearest one.
    """
    kinds = stage_kinds()
    for name in asked:
        if name not in kinds:
            near = difflib.get_close_matches(name, kinds, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the stages are {', '.join(kinds)}"
            raise UsageError(f"there is no stage {name!r}", hint=hint)


def _refused(kind: StageKind, subject: Subject, program: Program | None, recorded: set[str]) -> str:
    if kind.from_layer:
        if subject.source or kind.name in recorded:
            return ""
        return "an exported model has no layer; give module:factory to compare with it"
    if program is None:
        problem = subject.facts.get("export_problem", "")
        return f"the export failed: {problem}" if problem else "there is no export to run"
    if kind.name == "onednn_int8" and not program.quantised:
        return "the model is not quantised: it holds no quantisation op"
    return ""
