"""Reads the lines of a config into the variables of its profile.

In the bash reading the values are exactly what the parsing functions of the chain return. In the
corrected reading blanks around a value, a value cut at its second colon, a misspelt flag and the
like are put right, and each leaves a correction behind.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tipcheck.config_plans.plan import Correction
from tipcheck.config_plans.text import (
    Config,
    after_colon,
    for_mode,
    key_of,
    second_field,
    shorten,
    third_field,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tipcheck.config_plans.profile import LineSpec, Profile

_FIELDS: dict[str, Callable[[str], str]] = {
    "second-field": second_field,
    "after-colon": after_colon,
    "second": second_field,
    "third": third_field,
}
_READ_BY_ITEM = frozenset({"per-mode", "flags", "flag"})
FLAGS = {"true": "True", "false": "False", "gpu": "gpu", "cpu": "cpu", "null": "null"}
_FLAG_SLIPS = re.compile(r"(?i)t[rue]{2,4}|f[alse]{3,5}")


def read_lines(
    config: Config, profile: Profile, mode: str, *, as_bash: bool
) -> tuple[dict[str, str], dict[str, int], dict[str, tuple[Correction, ...]]]:
    """Return the variables, the line each came from, and what was put right in them."""
    values: dict[str, str] = {
        **profile.fixed,
        "mode": mode,
        "reading": "bash" if as_bash else "corrected",
    }
    origins: dict[str, int] = {}
    corrections: dict[str, tuple[Correction, ...]] = {}
    limit = profile.last_line
    for spec in profile.lines.values():
        line = config.counted(spec.number)
        if line is not None and limit is not None and line.number > limit:
            line = None
        number = line.number if line else spec.number
        text = line.text if line else ""
        key = key_of(text)
        value = field_of(text, spec, profile)
        wanted = key, (for_mode(value, mode) if spec.kind == "per-mode" else value)
        if not as_bash and line is None and spec.kind == "command":
            wanted = key, "null"
            detail = f"the file ends before line {spec.number}; bash would print an error and go on"
            corrections[spec.name] = (Correction("file-ends-early", detail, spec.number),)
        if not as_bash and line and not _is_clean(text, spec, *wanted):
            right, notes = corrected(text, spec, profile, mode, number)
            if right[0] != wanted[0]:
                corrections[f"{spec.name}.key"] = notes
            if right[1] != wanted[1]:
                corrections[spec.name] = notes
            wanted = right
        values[f"{spec.name}.key"], values[spec.name] = wanted
        origins[spec.name] = origins[f"{spec.name}.key"] = number
        if spec.third:
            text = third_field(text)
            values[spec.third] = text if as_bash else text.strip()
            origins[spec.third] = number
    for name, header in profile.after.items():
        line = config.counted(_line_of(header, config) + 1)
        text = line.text if line else ""
        values[f"{name}.key"] = key_of(text)
        values[name] = _FIELDS[profile.values](text)
        if line:
            origins[name] = origins[f"{name}.key"] = line.number
    return values, origins, corrections


def _line_of(header: str, config: Config) -> int:
    """Return the number of the line that holds a header, 0 where none does."""
    word = re.compile(rf"(?<!\w){re.escape(header)}(?!\w)")
    return next((n for n, text in enumerate(config.raw, 1) if word.search(text)), 0)


def _is_clean(text: str, spec: LineSpec, key: str, value: str) -> bool:
    """Return whether there is nothing in a line to put right: so it is with most."""
    return (
        spec.kind not in _READ_BY_ITEM
        and text.count(":") < 2
        and key == key.strip()
        and value == value.strip()
        and not text.startswith("\ufeff")
        and not text.endswith("\r")
    )


def field_of(text: str, spec: LineSpec, profile: Profile) -> str:
    """Return the value of a line as the chain's own functions read it."""
    if spec.kind == "per-mode":
        return second_field(text)
    part = profile.values if spec.part == "value" else spec.part
    return _FIELDS[part](text)


def corrected(
    text: str, spec: LineSpec, profile: Profile, mode: str, number: int
) -> tuple[tuple[str, str], tuple[Correction, ...]]:
    """Return key and value of a line as they are meant, and what was put right."""
    notes: list[Correction] = []

    def note(rule: str, detail: str) -> None:
        notes.append(Correction(rule, detail, number))

    if text.endswith("\r") and spec.kind == "python":
        note("carriage-return", "bash takes the CR of a CRLF file for a part of every value")
    text = text.removeprefix("\ufeff").rstrip("\r")
    value = field_of(text, spec, profile)
    if spec.part == "value" and ":" in text and not spec.is_layout:
        whole = text.split(":", 1)[1]
        if second_field(text) != whole and whole != value:
            note("value-cut-at-colon", f"bash reads {shorten(value)} of {shorten(whole)}")
            value = whole
    value = _stripped(value, spec, note)
    value = _meant(value, spec, mode, note)
    return (key_of(text).strip(), value), tuple(notes)


def _stripped(value: str, spec: LineSpec, note: Callable[[str, str], None]) -> str:
    """Return a value without the blanks around it; those that a command swallows are no defect."""
    bare = value.strip()
    if value != bare:
        if bare == "null":
            note("null-with-blank", f"bash takes {shorten(value)} for a value")
        elif value != value.lstrip() or spec.kind not in {"command", "text"}:
            note("blanks-around-value", f"bash keeps the blanks around {shorten(bare)}")
    return bare


def _meant(value: str, spec: LineSpec, mode: str, note: Callable[[str, str], None]) -> str:
    """Return a value as it is meant for a mode, its flags spelt right."""
    if spec.kind == "per-mode":
        return for_mode("|".join(item.strip() for item in value.split("|")), mode).strip()
    if spec.kind not in {"flags", "flag"}:
        return value
    right = "|".join(flag_meant(item) or item for item in value.split("|"))
    if right != value:
        note("misspelt-flag", f"bash knows no {shorten(value)}; {shorten(right)} is meant")
    return right


def flag_meant(item: str) -> str | None:
    """Return the flag that a misspelt one means, or None when it means none."""
    item = item.strip()
    if item.lower() in FLAGS:
        return FLAGS[item.lower()]
    if _FLAG_SLIPS.fullmatch(item):
        return "True" if item[0] in "tT" else "False"
    return None
