"""Finds what is wrong in a config, line by line, without running anything.

A finding of level ``error`` means that the config cannot do what it says; ``warning`` that a part
of it is lost or misread by the bash chain; ``note`` that something is worth knowing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tipcheck.config_plans import find, layout
from tipcheck.config_plans.lint_lines import Problem, line_problems, text_problems
from tipcheck.config_plans.planner import modes_with_values, plan_config
from tipcheck.config_plans.rules import RULES
from tipcheck.config_plans.text import Config, read
from tipcheck.errors import TipcheckError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tipcheck.config_plans.profile import Profile

_ORDER = {"error": 0, "warning": 1, "note": 2}
_REFUSED = "no-plan"
_QUIET = frozenset({"gpu-not-pinned", "blanks-around-value", "file-ends-early"})
_CORRECTED = " (only without --as-bash)"
_NOTES = frozenset({"log-overwritten"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong in a config.

    Attributes:
        file: the config.
        line: where, or None for the file as a whole.
        level: ``error``, ``warning`` or ``note``.
        rule: short name of what was checked.
        message: what is wrong.
        suggestion: what to write or do instead.
    """

    file: str
    line: int | None
    level: str
    rule: str
    message: str
    suggestion: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What ``lint`` found in some configs."""

    schema: ClassVar[str] = "tipcheck.lint/1"

    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """How many of them are errors."""
        return sum(1 for finding in self.findings if finding.level == "error")


def lint(path: Path, *, profile: str | None = None) -> list[Finding]:
    """Return everything that is wrong in a config file, the worst first.

    Args:
        path: the config.
        profile: name of the profile to read it with; found from the file and its repo if None.
    """
    try:
        config = read(path)
    except UsageError as error:
        line = error.where.removeprefix(f"{path}:") if error.where else ""
        number = int(line) if line.isdecimal() else None
        return [Finding(str(path), number, "error", "unreadable", error.what, error.hint)]
    problems = [*text_problems(config)]
    try:
        chosen = find.profile_for(config, profile)
    except UsageError as error:
        if profile is not None:
            raise
        near = find.shifted(config)
        problems += _gaps(near[1]) if near else [_no_profile(config, error)]
    else:
        problems += _with_profile(config, chosen)
    findings = [
        Finding(str(path), p.line, p.level, p.rule, p.message, p.suggestion)
        for p in _once(problems)
    ]
    return sorted(findings, key=lambda f: (_ORDER[f.level], f.line or 0, f.rule))


def _once(problems: list[Problem]) -> Iterator[Problem]:
    """Leave out what a correction or a refusal says again of a line that has been told of."""
    told: dict[tuple[str, int | None], bool] = {}
    wrong = {p.line for p in problems if p.level == "error" and p.rule != _REFUSED}
    for problem in dict.fromkeys(problems):
        correction = problem.suggestion.endswith(_CORRECTED)
        if not told.setdefault((problem.rule, problem.line), correction) and correction:
            continue
        if problem.rule == _REFUSED and problem.line and problem.line in wrong:
            continue
        yield problem


def _no_profile(config: Config, error: UsageError) -> Problem:
    """Return an error for a file that is no config, a warning for one that no profile reads."""
    keys = [line.text.split(":", 1)[0].strip(" \ufeff") for line in config.lines[1:3]]
    level = "warning" if keys == ["model_name", "python"] else "error"
    where = error.where.rpartition(":")[2]
    number = int(where) if where.isdigit() else None
    return Problem(number, level, "no-profile", error.what, error.hint)


def _with_profile(config: Config, profile: Profile) -> Iterator[Problem]:
    gaps = layout.gaps(config, profile)
    if gaps:
        yield from _gaps(gaps)
        return
    if stray := layout.foreign(config, profile):
        spec, line = stray
        what = f"the lines are not those of profile {profile.name}: {spec.example!r} is expected"
        yield Problem(
            line.number, "error", "no-profile", f"{what} here", "choose another with --profile"
        )
        return
    yield from line_problems(config, profile)
    yield from _ends_early(config, profile)
    seen: set[tuple[str, int | None]] = set()
    for mode in modes_with_values(config, profile):
        yield from _planned(config, profile, mode, seen)


def _gaps(gaps: list[layout.Gap]) -> Iterator[Problem]:
    for gap in gaps:
        yield Problem(
            gap.number,
            "error",
            "shifted" if gap.expected else "inserted-line",
            gap.describe(),
            f"insert {gap.expected.example!r}" if gap.expected else "remove the line",
        )


def _ends_early(config: Config, profile: Profile) -> Iterator[Problem]:
    missing = [
        spec
        for number, spec in profile.lines.items()
        if config.counted(number) is None and spec.kind == "command"
    ]
    if missing:
        first = missing[0]
        yield Problem(
            config.lines[-1].number,
            "warning",
            "file-ends-early",
            f"the file ends before line {first.number} ({first.about}); the bash prints "
            "'unary operator expected' there and skips the stage",
            f"add the missing lines, such as {first.example!r}, or 'null' for a stage without one",
        )


def _planned(
    config: Config, profile: Profile, mode: str, seen: set[tuple[str, int | None]]
) -> Iterator[Problem]:
    """Yield what the corrected reading had to put right, and why it gave up if it did.

    Args:
        config: the config.
        profile: the profile that reads it.
        mode: the mode to plan.
        seen: what other modes have told already; one place is told once.
    """
    root = find.root_of(config.path)
    try:
        plan = plan_config(config, mode, profile, root=root)
    except TipcheckError as error:
        number = error.where.rpartition(":")[2]
        level = "note" if "train" not in mode else "error"
        line = int(number) if number.isdigit() else None
        if (error.what, line) not in seen:
            seen.add((error.what, line))
            yield Problem(line, level, _REFUSED, f"mode {mode}: {error.what}", error.hint)
        return
    for step in plan.steps:
        for correction in step.corrections:
            place = correction.rule, correction.line
            if correction.rule in _QUIET or place in seen:
                continue
            seen.add(place)
            level = "note" if correction.rule in _NOTES else "warning"
            suggestion = RULES[correction.rule] + _CORRECTED
            yield Problem(correction.line, level, correction.rule, correction.detail, suggestion)
