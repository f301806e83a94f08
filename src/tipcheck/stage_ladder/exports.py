"""What verifying the exports of a command gives: the contract of the ladder with its readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tipcheck.compare.verdict import Status
from tipcheck.stage_ladder.rung import LadderResult


@dataclass(frozen=True, slots=True)
class ExportVerdict:
    """One exported function, verified against the layer it came from.

    Attributes:
        name: the path as the command said it.
        status: the verdict.
        sentence: what is wrong, or that nothing is.
        notes: what else a reader has to know.
        last_lines: the end of what the layer printed, where it died.
        ladder: the whole ladder, None where there was nothing to run.
        seconds: what verifying took.
    """

    name: str
    status: Status
    sentence: str
    notes: tuple[str, ...] = ()
    last_lines: tuple[str, ...] = ()
    ladder: LadderResult | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ExportsReport:
    """One command and all that it exported.

    Attributes:
        command: as it was typed.
        exit_code: of the command itself.
        good: whether it ended well, exported something, and all of that verified.
        sentence: why not, or how much was verified.
        exports: in the order of the saves.
        config: the config that the command was for, empty for a command on its own.
        seconds: what verifying all of them took.
    """

    schema: ClassVar[str] = "tipcheck.exports/1"

    command: str
    exit_code: int
    good: bool
    sentence: str
    exports: tuple[ExportVerdict, ...]
    config: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class EachConfig:
    """One config of a whole repo.

    Attributes:
        config: its path.
        outcome: of its step: ``passed``, ``failed``, ``skipped`` and so on; ``not run`` after an
            interruption.
        verdict: the worst verdict of its exports; empty where nothing was verified.
        reason: why it is not good, in one line.
        seconds: what its export took.
        verify_seconds: what verifying took besides.
        log: of the command.
        report: everything about its exports, None where the command did not get that far.
    """

    config: str
    outcome: str
    verdict: str
    reason: str = ""
    seconds: float = 0.0
    verify_seconds: float = 0.0
    log: str = ""
    report: ExportsReport | None = None


@dataclass(frozen=True, slots=True)
class EachReport:
    """All configs of a repo.

    Attributes:
        run: number in the ledger.
        good: whether every config is.
        command: the command with ``{}`` in it.
        seconds: wall time.
        counts: configs by verdict; ``no export`` for those without one.
        configs: in order.
        interrupted_by: name of the signal that ended it early.
    """

    schema: ClassVar[str] = "tipcheck.each/1"

    run: int
    good: bool
    command: str
    seconds: float
    counts: Mapping[str, int]
    configs: tuple[EachConfig, ...]
    interrupted_by: str = ""


_ORDER = (Status.CRASH, Status.FAIL, Status.UNSUPPORTED, Status.SUSPECT, Status.PASS)


def sum_up_exports(
    command: str,
    exit_code: int,
    exports: tuple[ExportVerdict, ...],
    *,
    allow: frozenset[str] = frozenset(),
    config: str = "",
) -> ExportsReport:
    """Return the report of one command."""
    bad = [one for one in exports if not _is_good(one, allow)]
    if exit_code:
        sentence = f"the command ended with code {exit_code}"
    elif not exports:
        sentence = (
            "the command exported nothing that was noticed, so nothing was verified (a Python with "
            "-I, -E, -S or a PYTHONPATH set anew is not)"
        )
    elif bad:
        first = bad[0]
        count = f"{len(bad)} of {len(exports)} exports" if len(exports) > 1 else "the export"
        sentence = f"{count} did not verify; {first.name}: {first.sentence}"
    else:
        sentence = "1 export verified" if len(exports) == 1 else f"{len(exports)} exports verified"
    good = not exit_code and bool(exports) and not bad
    seconds = round(sum(one.seconds for one in exports), 3)
    return ExportsReport(command, exit_code, good, sentence, exports, config, seconds)


def worst_of(exports: tuple[ExportVerdict, ...]) -> str:
    """Return the worst verdict, or an empty text when there is none."""
    found = {one.status for one in exports}
    return next((status.value for status in _ORDER if status in found), "")


def _is_good(one: ExportVerdict, allow: frozenset[str]) -> bool:
    if one.ladder is not None:
        return one.ladder.good(allow)
    return one.status is Status.PASS
