"""Makes the plan of one config in one mode, in either of two readings.

The bash reading gives what the repo's own chain would start, command for command. The corrected
reading, the default, puts the defects of the chain right; ``rules`` lists what that means. What
cannot be told for certain is refused with the line that is to blame, never guessed.
"""

from __future__ import annotations

import glob
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tipcheck.config_plans import find
from tipcheck.config_plans.device_choice import device_values
from tipcheck.config_plans.layout import check_layout
from tipcheck.config_plans.operations import run_flow
from tipcheck.config_plans.overrides import with_values
from tipcheck.config_plans.plan import Correction, Plan, Step
from tipcheck.config_plans.processes import device_and_processes, with_processes
from tipcheck.config_plans.reading import field_of, flag_meant, read_lines
from tipcheck.config_plans.state import ASSIGNMENT, State
from tipcheck.config_plans.text import Config, modes_of, read, shorten
from tipcheck.config_plans.words import ShellTextError, UnfinishedTextError, split_words
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tipcheck.config_plans.profile import Profile

_LONGEST_PATTERN = 1000
_PROGRAM = re.compile(r"[^-%!][^\n]*(?<!/)")


def make_plan(
    path: Path,
    mode: str,
    *,
    profile: str | None = None,
    as_bash: bool = False,
    values: Mapping[str, str] | None = None,
    device: str | None = None,
) -> Plan:
    """Return the plan of a config file.

    Args:
        path: the config.
        mode: such as ``lite_train_lite_infer``.
        profile: name of the profile to read it with; found from the file and its repo if None.
        as_bash: keep the defects of the bash chain.
        values: other values for lines of the config, by key, name or number; see ``overrides``.
        device: ``cpu``, ``cpu:2`` (processes) or ``gpu:0,1``, instead of what the config names;
            see ``device_choice`` and ``processes``.

    Raises:
        UsageError: the config, the mode or the profile cannot be used.
        ToolError: the file cannot be read.
    """
    device, processes = device_and_processes(device)
    config = read(path)
    chosen = find.profile_for(config, profile, as_bash=as_bash)
    if device is not None:
        values = {**device_values(config, chosen, device), **(values or {})}
    if values:
        config = with_values(config, chosen, mode, values)
    plan = plan_config(config, mode, chosen, root=find.root_of(path), as_bash=as_bash)
    return with_processes(plan, processes)


def plan_config(
    config: Config, mode: str, profile: Profile, *, root: Path, as_bash: bool = False
) -> Plan:
    """Return the plan of a config that is already read, with a given profile."""
    check_mode(config, mode, profile)
    if as_bash:
        _check_patterns(config, profile, root)
    else:
        check_layout(config, profile)
    values, origins, corrections = read_lines(config, profile, mode, as_bash=as_bash)
    _check_interpreter(config, values, origins)
    values["root"] = str(root)
    if not as_bash:
        _check_devices(config, values, origins)
        _check_quotes(config, profile, values, origins)
    state = State(config, mode, as_bash, values, origins, corrections)
    run_flow(profile.flow, state)
    steps = tuple(state.steps)
    if not as_bash:
        _check_logs(config, steps, origins)
        steps = _own_logs(_without_duplicates(_with_leftovers(steps, state.pending)))
    return Plan(
        config=str(config.path),
        mode=mode,
        profile=profile.name,
        model_name=values.get("model_name", ""),
        steps=steps,
    )


def modes_with_values(config: Config, profile: Profile) -> list[str]:
    """Return the modes of the profile that a config has values for, its training modes first."""
    named = {
        mode
        for spec in profile.lines.values()
        if spec.kind == "per-mode" and (line := config.counted(spec.number))
        for mode in modes_of(field_of(line.text, spec, profile))
    }
    return [mode for mode in profile.modes if mode in named or "train" not in mode]


def check_mode(config: Config, mode: str, profile: Profile) -> None:
    """Refuse a mode that the chain does not know; the bash accepts any word in silence."""
    if mode in profile.modes:
        return
    known = ", ".join(modes_with_values(config, profile))
    raise UsageError(
        f"no mode {mode!r} (profile {profile.name})",
        where=str(config.path),
        hint=f"this config has values for {known}",
    )


def _check_interpreter(
    config: Config, values: Mapping[str, str], origins: Mapping[str, int]
) -> None:
    """Refuse a line 3 that names no program: the first word of the script would be started."""
    python = values.get("python", "python").strip()
    try:
        words = split_words(python)
    except ShellTextError:
        return  # the first command says why, and where
    program = next((word for word in words if not ASSIGNMENT.fullmatch(word.text)), None)
    if program and not program.pattern and _PROGRAM.fullmatch(program.text) and "|" not in python:
        return
    raise UsageError(
        f"names no interpreter but {shorten(python)}" if python else "names no interpreter",
        where=config.where(origins.get("python")),
        hint="write one, as in python:python3",
    )


def _check_devices(config: Config, values: Mapping[str, str], origins: Mapping[str, int]) -> None:
    """Refuse devices of the inference of which none is one: nothing would be inferred."""
    named = [item for item in values.get("device", "").split("|") if item.strip()]
    if named and not any(flag_meant(item) for item in named):
        raise UsageError(
            f"{shorten(values['device'])} names no device, so no inference would run",
            where=config.where(origins.get("device")),
            hint="write True|False or gpu|cpu, or null for no inference",
        )


def _check_quotes(
    config: Config, profile: Profile, values: Mapping[str, str], origins: Mapping[str, int]
) -> None:
    """Refuse a value whose open quote or last backslash would take in the option after it."""
    for spec in profile.lines.values():
        value = values.get(spec.name, "")
        if spec.uses != "none" and ("'" in value or '"' in value or "\\" in value):
            try:
                split_words(value)
            except UnfinishedTextError as error:
                raise UsageError(
                    f"a shell would not pass this on as text: {error}",
                    where=config.where(origins.get(spec.name)),
                    hint="close the quote, or put the text in single quotes",
                ) from None
            except ShellTextError:
                pass  # the command that uses it says so, if one does


def _check_logs(config: Config, steps: tuple[Step, ...], origins: Mapping[str, int]) -> None:
    """Refuse logs outside the repo: a name from a config is no way to write anywhere."""
    for step in steps:
        if ".." in step.log.split("/") or not step.log.isprintable():
            raise UsageError(
                f"the log {shorten(step.log)} would lie outside the repo"
                if step.log.isprintable()
                else f"the log {shorten(step.log)} has characters that cannot be shown",
                where=config.where(origins.get("model_name")),
                hint="write plain names in the config",
            )


def _check_patterns(config: Config, profile: Profile, root: Path) -> None:
    """Refuse text that bash replaces by names of files: a value, an item of a list, a line."""
    for line in config.lines[: profile.last_line]:
        if any(character in line.text for character in "*?["):
            value = line.text.split(":", 1)[-1]
            texts = {value, *line.text.split(":")}
            texts.update(item.split("=", 1)[-1] for item in value.split("|"))
            found = next(filter(None, (_first_match(text, root) for text in sorted(texts))), None)
            if found:
                raise UsageError(
                    f"bash puts {found!r} and other files that match in the place of a part of "
                    f"{shorten(line.text)}",
                    where=config.where(line.number),
                    hint="name the file, or put the text in quotes",
                )


def _first_match(pattern: str, root: Path) -> str | None:
    """Return a file that a text means as a pattern."""
    if not glob.has_magic(pattern) or " " in pattern or len(pattern) > _LONGEST_PATTERN:
        return None
    return next(glob.iglob(pattern, root_dir=root), None)  # noqa: PTH207 - may be absolute


def _with_leftovers(steps: tuple[Step, ...], pending: list[Correction]) -> tuple[Step, ...]:
    if not steps or not pending:
        return steps
    last = steps[-1]
    corrections = tuple(dict.fromkeys((*last.corrections, *pending)))
    return (*steps[:-1], replace(last, corrections=corrections))


def _without_duplicates(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Drop steps that do exactly what an earlier one did on the same input."""
    first: dict[object, int] = {}
    kept: list[Step] = []
    times: dict[int, int] = {}
    for step in steps:
        same = (step.argv, tuple(sorted(step.env.items())), step.cwd, step.needs)
        if same in first and step.stage != "train":
            times[first[same]] = times.get(first[same], 1) + 1
            continue
        first.setdefault(same, len(kept))
        kept.append(step)
    for index, count in times.items():
        note = Correction(
            "duplicate-command", f"bash runs this command {count} times; once is enough"
        )
        kept[index] = replace(kept[index], corrections=(*kept[index].corrections, note))
    return tuple(kept)


def _own_logs(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Give each step a log that no later one overwrites."""
    taken: set[str] = set()
    counts: dict[str, int] = {}
    kept: list[Step] = []
    for step in steps:
        if step.log in taken:
            log = _free(step.log, taken, counts)
            note = Correction("log-overwritten", f"bash writes {step.log} again; this is {log}")
            step = replace(step, log=log, corrections=(*step.corrections, note))  # noqa: PLW2901
        taken.add(step.log)
        kept.append(step)
    return tuple(kept)


def _free(log: str, taken: set[str], counts: dict[str, int]) -> str:
    stem, dot, suffix = log.rpartition(".")
    while True:
        counts[log] = counts.get(log, 1) + 1
        name = f"{stem}_{counts[log]}{dot}{suffix}"
        if name not in taken:
            return name
