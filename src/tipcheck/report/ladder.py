"""A ladder on the terminal: one line per rung with a bar, what was found, and one sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tipcheck.backends.server.state_names import LEFT_OUT
from tipcheck.compare.verdict import Status
from tipcheck.report.fitting import print_fitting
from tipcheck.report.terminal import STYLES, decibels, printable, short, terminal

if TYPE_CHECKING:
    from rich.console import Console

    from tipcheck.stage_ladder.rung import Against, LadderResult, Rung

BAR_FULL_DB = 150.0
_BAR_WIDTH = 20
_SPARE = ("dB to below", "x noise", "dB to float64", "worst ÷ rms", "distance from the bottom")
"""Columns that a narrow terminal can do without, least needed first."""
_QUESTIONS = (Status.FAIL, Status.SUSPECT)


def show_ladder(result: LadderResult, console: Console | None = None) -> None:
    """Print a ladder."""
    console = console or terminal()
    print_fitting(console, _table(result), _SPARE)
    for rung in result.rungs:
        details = _details(rung)
        if details is not None:
            console.print(details, end="\n\n")
    console.print(_unsupported(result), end="")
    console.print(_left_out(result), end="")
    console.print(_inputs(result))
    console.print(_last_lines(result))


def bar_of(sqnr: float | None, width: int = _BAR_WIDTH) -> str:
    """Return a bar as long as answers are close; full when they are equal."""
    if sqnr is None or math.isnan(sqnr):
        return " " * width
    share = max(0.0, min(1.0, sqnr / BAR_FULL_DB))
    return ("█" * round(share * width)).ljust(width, "░")


def _table(result: LadderResult) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("stage", style="name", no_wrap=True)
    table.add_column("")
    table.add_column("distance from the bottom", no_wrap=True)
    for title in ("dB", "worst ÷ rms", "x noise", "dB to below", "dB to float64"):
        table.add_column(title, justify="right")
    table.add_column("state and shape", no_wrap=True)
    for rung in result.rungs:
        if rung.status is Status.UNSUPPORTED:
            continue
        style = STYLES[rung.status.value]
        bottom, below = rung.bottom, rung.below
        table.add_row(
            rung.stage,
            Text(rung.status.value, style),
            _bar(rung, style),
            _db(bottom),
            short(bottom.worst) if bottom else "-",
            short(bottom.times_noise, 2) if bottom else "-",
            _db(below) if below is not bottom else "-",
            decibels(rung.referee_db) if rung.referee_db is not None else "-",
            _state(rung),
        )
    return table


def _bar(rung: Rung, style: str) -> Text:
    if rung.status is Status.CRASH:
        return Text("no answer", style)
    if rung.bottom is None:
        return Text("the reference", "quiet")
    return Text(bar_of(rung.bottom.sqnr_db), style)


def _db(against: Against | None) -> str:
    if against is None or against.sqnr_db is None:
        return "-"
    return "differ" if against.sqnr_db == -math.inf else decibels(against.sqnr_db)


def _state(rung: Rung) -> Text:
    if not rung.state:
        return Text("-", "quiet")
    asked = [check for check in rung.state if check.status is not Status.UNSUPPORTED]
    bad = [check for check in asked if check.status in _QUESTIONS]
    if bad:
        return Text(", ".join(check.name for check in bad), STYLES[bad[0].status.value])
    return Text(f"{len(asked)} of {len(rung.state)} asked, all hold", "quiet")


def _details(rung: Rung) -> Text | None:
    if rung.status in (Status.PASS, Status.UNSUPPORTED) and not rung.notes:
        return None
    style = STYLES[rung.status.value]
    told = rung.reason or "runs"
    text = Text.assemble((rung.stage, "name"), ": ", (printable(told), style))
    if rung.status in _QUESTIONS and not rung.reason.startswith("as "):
        for line in _evidence(rung):
            text.append(f"\n  {line}", "quiet")
    for line in rung.last_lines:
        text.append(f"\n  | {printable(line)}", "quiet")
    for check in rung.state:
        if check.status in _QUESTIONS and check.reason != rung.reason:
            text.append(f"\n  {check.name}: {check.reason}", STYLES[check.status.value])
    for note in rung.notes:
        text.append(f"\n  note: {printable(note)}", "warn")
    return text


def _evidence(rung: Rung) -> list[str]:
    against = rung.bottom
    if against is None or against.status is Status.PASS:
        return []
    lines = [f"compared with {against.stage}, decided by {against.rule}: {against.where}"]
    verdict = against.verdict
    if verdict is not None and verdict.worst is not None:
        place = ", ".join(map(str, verdict.worst.index))
        lines.append(
            f"worst at [{place}]: expected {verdict.worst.expected}, actual {verdict.worst.actual}"
        )
    if verdict is not None and verdict.threshold is not None:
        limit = verdict.threshold
        lines.append(f"tolerance: rtol {limit.rtol:g}, atol {limit.atol:g} ({limit.source})")
    if against.flips is not None and against.flips.flipped:
        flips = against.flips
        lines.append(
            f"decisions: {flips.flipped} of {flips.decisions} flip, "
            f"{flips.flipped_clearly} of them clearly; another top 5 in {flips.top5}"
        )
    return lines


def _unsupported(result: LadderResult) -> Text:
    why: dict[str, list[str]] = {}
    for rung in result.rungs:
        if rung.status is Status.UNSUPPORTED:
            why.setdefault(rung.reason, []).append(rung.stage)
    text = Text()
    for reason, stages in why.items():
        text.append("UNSUPPORTED ", "quiet")
        text.append(", ".join(stages), "name")
        text.append(f": {printable(reason)}\n", "quiet")
    return text


def _left_out(result: LadderResult) -> Text:
    """Say what could have been asked and was not."""
    why: dict[tuple[str, str], list[str]] = {}
    for rung in result.rungs:
        by_reason: dict[str, list[str]] = {}
        for check in rung.state:
            if check.reason.startswith(LEFT_OUT):
                by_reason.setdefault(check.reason, []).append(check.name)
        for reason, names in by_reason.items():
            why.setdefault((", ".join(names), reason), []).append(rung.stage)
    text = Text()
    for (checks, reason), stages in why.items():
        text.append("NOT ASKED ", "warn")
        text.append(", ".join(stages), "name")
        because = printable(reason.removeprefix(f"{LEFT_OUT}: "))
        text.append(f": {checks}: {because}\n", "quiet")
    return text


def _inputs(result: LadderResult) -> Text:
    speaking = [note.name for note in result.sets if note.speaks]
    told = "; ".join(map(printable, speaking)) or "none that says anything"
    text = Text(f"inputs: {told}", "quiet")
    noted: dict[str, list[str]] = {}
    for note in result.sets:
        if note.note:
            noted.setdefault(note.note, []).append(note.name)
    for why, names in noted.items():
        text.append(f"\n  {'; '.join(map(printable, names))}: {printable(why)}", "quiet")
    return text


def _last_lines(result: LadderResult) -> Text:
    status = result.status.value
    text = Text.assemble((status, STYLES[status]), f"  {printable(result.sentence)}")
    against = [rung.bottom for rung in result.rungs if rung.bottom is not None]
    elements = sum(item.elements for item in against)
    sets = len(result.sets)
    given = f"{sets} input set{'s' if sets != 1 else ''}"
    covered = f"{result.compared} stages, {given}, {elements:,} elements"
    text.append(f"\ncompared: {covered}; referee: {printable(result.referee)}", "quiet")
    if result.resolution is not None:
        text.append(
            f"\na fault smaller than {result.resolution:.1e} x rms could pass unseen in "
            f"{result.resolution_where}",
            "quiet",
        )
    return text
