"""Gives lines of a config other values for one plan, without editing the file.

A line is named by its key, by the name that the profile gives it, or by its number. Two lines often
share a key (``--pretrained`` of the training and of the export), so a key that is not unique is an
error that lists the numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tipcheck.config_plans.text import Config, Line, key_of
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tipcheck.config_plans.profile import LineSpec, Profile


def with_values(config: Config, profile: Profile, mode: str, values: Mapping[str, str]) -> Config:
    """Return a config whose lines have other values.

    Args:
        config: the config as it stands.
        profile: the profile that reads it.
        mode: the mode to plan; a plain value of a line that is read by mode is for this one.
        values: the new values, by key, name or number of their line.

    Raises:
        UsageError: no line or several are meant, or a value cannot stand in a line.
    """
    lines = list(config.lines)
    for name, value in values.items():
        if "\n" in value or "\0" in value:
            raise UsageError(f"the value for {name!r} does not fit in one line")
        spec = _spec_for(name, config, profile)
        old = lines[spec.number - 1]
        by_mode = spec.kind == "per-mode" and "=" not in value and value != "null"
        text = f"{key_of(old.text)}:{mode}={value}" if by_mode else f"{key_of(old.text)}:{value}"
        lines[spec.number - 1] = Line(old.number, text)
    return replace(config, lines=tuple(lines))


def _spec_for(name: str, config: Config, profile: Profile) -> LineSpec:
    found = [
        spec
        for spec in profile.lines.values()
        if (line := config.counted(spec.number)) is not None
        and not spec.is_layout
        and name in {str(spec.number), spec.name, key_of(line.text).strip()}
    ]
    named = [spec for spec in found if name in {str(spec.number), spec.name}]
    found = named or found
    if len(found) == 1:
        return found[0]
    if found:
        numbers = ", ".join(f"{spec.number} ({spec.about})" for spec in found)
        raise UsageError(
            f"{name!r} is the key of several lines: {numbers}",
            where=str(config.path),
            hint=f"name the line by its number, as in {found[0].number}=…",
        )
    known = ", ".join(
        dict.fromkeys(
            key_of(line.text).strip()
            for spec in profile.lines.values()
            if not spec.is_layout
            and (line := config.counted(spec.number)) is not None
            and key_of(line.text).strip() not in {"", "null"}
        )
    )
    raise UsageError(
        f"no line has the key {name!r}", where=str(config.path), hint=f"its keys are {known}"
    )
