"""The end of a run on the terminal: a table by config and stage, every cause once, one last line.

Ten steps that failed for the same reason are one entry with ten names, so that the page stays as
long as the number of things to look at, not the number of steps.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tipcheck.report.fitting import print_fitting
from tipcheck.report.run_words import LOOKS, ORDER, configs, duration, size, steps
from tipcheck.step_runner.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tipcheck.report.run_result import RunReport, StepReport

_ROWS = 40
_CAUSES = 20
_NAMES = 4


def show_run(report: RunReport, console: Console) -> None:
    """Print a run that is over."""
    print_fitting(console, _table(report), ("memory", "time"))
    _show_causes(report, console)
    _show_measured(report, console)
    console.print(_last_line(report))


def _table(report: RunReport) -> Table:
    stages = list(dict.fromkeys(step.stage for step in report.steps))
    rows: dict[tuple[str, str], list[StepReport]] = defaultdict(list)
    for step in report.steps:
        rows[step.config, step.mode].append(step)
    modes = {mode for _, mode in rows}
    shared = _shared_folder([config for config, _ in rows])
    title = "  ".join([shared, *modes] if len(modes) == 1 else [shared]).strip()
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=Text(title, "quiet"), title_justify="left")
    table.add_column("config", style="name", overflow="fold", min_width=16)
    if len(modes) > 1:
        table.add_column("mode", overflow="fold")
    for stage in stages:
        table.add_column(stage, no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("memory", justify="right", no_wrap=True)
    ordered = sorted(rows.items(), key=lambda row: all(_good(step) for step in row[1]))
    for (config, mode), members in ordered[:_ROWS]:
        by_stage: dict[str, list[StepReport]] = defaultdict(list)
        for step in members:
            by_stage[step.stage].append(step)
        peak = max((step.peak_memory_bytes or 0 for step in members), default=0)
        table.add_row(
            Text(config[len(shared) :]),
            *([Text(mode)] if len(modes) > 1 else []),
            *(_cell(by_stage[stage]) for stage in stages),
            duration(sum(step.seconds for step in members)),
            size(peak or None),
        )
    left = ordered[_ROWS:]
    if left:
        bad = sum(not all(_good(step) for step in members) for _, members in left)
        table.add_row(Text(f"and {configs(len(left))} more, {bad:,} of them not good", "quiet"))
    return table


def _cell(members: Sequence[StepReport]) -> Text:
    """Return the state of one stage: its worst outcome, and how many steps have it."""
    if not members:
        return Text("")
    worst = next(
        (outcome for outcome in ORDER if any(step.outcome is outcome for step in members)), None
    )
    if worst is None or (LOOKS[worst].style == "good" and any(not m.outcome for m in members)):
        return Text("not run", "quiet")
    look = LOOKS[worst]
    count = sum(step.outcome is worst for step in members)
    number = f"{count:,} " if len(members) > 1 else ""
    if count < len(members):
        number = f"{count:,}/{len(members):,} "
    return Text(f"{look.mark} {number}{worst.value}", look.style)


def _shared_folder(paths: Sequence[str]) -> str:
    """Return the folders that all paths begin with, up to and including the last slash."""
    try:
        folder = os.path.commonpath([os.path.dirname(path) for path in paths])  # noqa: PTH120
    except ValueError:  # some absolute, some not
        return ""
    return f"{folder}/" if folder else ""


def _show_causes(report: RunReport, console: Console) -> None:
    causes: dict[tuple[Outcome, str, str], list[StepReport]] = defaultdict(list)
    for step in report.steps:
        if step.outcome and not _good(step) and step.outcome is not Outcome.BLOCKED:
            causes[step.outcome, step.reason, step.hint].append(step)
    for (outcome, reason, hint), members in list(causes.items())[:_CAUSES]:
        look = LOOKS[outcome]
        names = ", ".join(f"{step.model_name} {step.step}" for step in members[:_NAMES])
        more = f" and {len(members) - _NAMES:,} more" if len(members) > _NAMES else ""
        head = Text.assemble((f"{look.mark} {outcome.value} ", look.style), (names + more, "name"))
        console.print(head, overflow="fold")
        console.print(Padding(Text(reason), (0, 0, 0, 2), expand=False), overflow="fold")
        if hint:
            console.print(
                Padding(Text("→ " + hint, "warn"), (0, 0, 0, 2), expand=False), overflow="fold"
            )
        if members[0].log:
            console.print(
                Padding(Text("log: " + members[0].log, "quiet"), (0, 0, 0, 2), expand=False)
            )
        console.print()
    if len(causes) > _CAUSES:
        console.print(Text(f"and {len(causes) - _CAUSES:,} more causes, in results.json", "quiet"))


def _show_measured(report: RunReport, console: Console) -> None:
    """Print what inference steps measured about themselves."""
    measured = [(step, step.autolog) for step in report.steps if step.autolog]
    if not measured:
        return
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, title="measured by AutoLog", title_justify="left"
    )
    table.add_column("step", style="name", overflow="fold")
    table.add_column("device")
    table.add_column("precision")
    for title in ("batch", "pre ms", "infer ms", "post ms", "CPU MB"):
        table.add_column(title, justify="right")
    for step, log in measured[:_ROWS]:
        numbers = (
            log.batch_size,
            log.preprocess_ms,
            log.inference_ms,
            log.postprocess_ms,
            log.cpu_rss_mb,
        )
        table.add_row(
            Text(step.step),
            log.runtime_device,
            log.precision,
            *("-" if number is None else f"{number:.4g}" for number in numbers),
        )
    print_fitting(console, table, ("CPU MB", "post ms", "pre ms", "device", "precision"))


def _last_line(report: RunReport) -> Text:
    parts = [
        (f"{report.counts[outcome.value]:,} {outcome.value}", LOOKS[outcome].style)
        for outcome in ORDER
        if report.counts.get(outcome.value)
    ]
    if report.counts.get("not run"):
        parts.append((f"{report.counts['not run']:,} not run", "warn"))
    verdict = ("GOOD", "good") if report.good else ("NOT GOOD", "bad")
    if report.interrupted_by:
        verdict = (f"INTERRUPTED by {report.interrupted_by}", "warn")
    line = Text.assemble(verdict, f"  {steps(len(report.steps))}: ")
    line.append_text(Text(", ").join(Text(*part) for part in parts))
    line.append(f"  in {duration(report.seconds)}")
    if report.interrupted_by:
        line.append("; the same command goes on from here", "quiet")
    return line


def _good(step: StepReport) -> bool:
    return step.outcome is not None and step.outcome.is_good
