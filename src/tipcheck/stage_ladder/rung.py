"""What climbing the ladder gives: the contract between ``stage_ladder`` and its readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from tipcheck.compare.verdict import Status, TensorVerdict


@dataclass(frozen=True, slots=True)
class Flips:
    """Decisions that came out differently, for outputs that look like scores.

    Attributes:
        decisions: rows of scores that were looked at.
        flipped: rows whose largest score is at another place.
        flipped_clearly: those among them where the largest score led by more than the noise.
        top5: rows of which another five are in front; of no output with fewer than ten scores.
    """

    decisions: int
    flipped: int
    flipped_clearly: int
    top5: int = 0


@dataclass(frozen=True, slots=True)
class Against:
    """One stage compared with another, over all input sets.

    Attributes:
        stage: the stage it was compared with.
        status: the verdict.
        rule: which rule decided: ``gates``, ``budget``, ``noise`` or ``bounds``.
        reason: why, in one sentence.
        sqnr_db: signal to noise of the worst output; ``inf`` when every bit is the same.
        worst: largest difference, divided by the root mean square of its output.
        times_noise: the difference of the worst output, in units of the noise floor; None where
            the floor is not known.
        where: input set and output of the worst.
        verdict: of the output that decided, with its evidence.
        sets: input sets that were compared.
        outputs: outputs that were compared, all input sets together.
        elements: likewise.
        flips: decisions that changed; None where nothing looks like scores.
    """

    stage: str
    status: Status
    rule: str
    reason: str
    sqnr_db: float | None = None
    worst: float | None = None
    times_noise: float | None = None
    where: str = ""
    verdict: TensorVerdict | None = None
    sets: int = 0
    outputs: int = 0
    elements: int = 0
    flips: Flips | None = None


@dataclass(frozen=True, slots=True)
class StateCheck:
    """One question about state and shape, which a stage answers without any reference.

    Attributes:
        name: such as ``run N`` or ``rows permuted``.
        status: PASS, FAIL, SUSPECT, or UNSUPPORTED where the model gives nothing to ask about.
        reason: what was seen, or why it could not be asked.
        worst: largest difference, divided by the root mean square of its output.
    """

    name: str
    status: Status
    reason: str = ""
    worst: float | None = None


@dataclass(frozen=True, slots=True)
class Rung:
    """One stage, compared with the one below it and with the bottom of the ladder.

    Attributes:
        stage: name of the stage.
        changed: the one thing that is different from the rung below.
        status: the verdict on this rung.
        reason: why, in one sentence.
        below: compared with the nearest rung below that gave answers.
        bottom: compared with the lowest rung; None on the lowest itself.
        referee_db: signal to noise against the float64 referee; None without one.
        spread: largest difference between two runs in one process, divided by rms; None where it
            was run once.
        spread_fresh: the same between two processes.
        state: the state-and-shape suite; empty where the stage has none.
        seconds: what it took: ``load``, ``run`` (all input sets once), ``state``.
        last_lines: the end of what its worker printed, where it gave no answer.
        notes: what else a reader has to know.
    """

    stage: str
    changed: str
    status: Status
    reason: str = ""
    below: Against | None = None
    bottom: Against | None = None
    referee_db: float | None = None
    spread: float | None = None
    spread_fresh: float | None = None
    state: tuple[StateCheck, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    last_lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetNote:
    """What an input set was worth.

    Attributes:
        name: what people call it.
        speaks: whether answers to it can tell a right stage from a wrong one.
        note: why not, or what is special about it.
    """

    name: str
    speaks: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class LadderResult:
    """The whole ladder.

    Attributes:
        model: what was verified.
        status: the verdict on all of it.
        sentence: what is wrong, or that nothing is, in words.
        rungs: from the bottom up; stages that cannot run here are among them.
        first_break: stage of the first rung on which the answers change, or None.
        sets: the input sets.
        referee: what the float64 referee was, or why there is none.
        resolution: size of the smallest fault that would have been seen, as a share of the rms of
            the output that hides it best; None where nothing was compared.
        resolution_where: that output.
        compared: stages whose answers were compared with those of another.
        facts: what is known of the subject.
    """

    schema: ClassVar[str] = "tipcheck.ladder/1"

    model: str
    status: Status
    sentence: str
    rungs: tuple[Rung, ...]
    first_break: str | None = None
    sets: tuple[SetNote, ...] = ()
    referee: str = ""
    resolution: float | None = None
    resolution_where: str = ""
    compared: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)

    def good(self, allow: frozenset[str] = frozenset()) -> bool:
        """Return whether the exit code is 0; ``allow`` may hold ``suspect``."""
        return self.status is Status.PASS or (self.status is Status.SUSPECT and "suspect" in allow)
