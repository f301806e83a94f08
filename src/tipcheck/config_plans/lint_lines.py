"""What ``lint`` checks in single lines: their text, and their values against the profile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcheck.config_plans.align import HEADER, SEPARATOR, looks_like, mark_of, matches
from tipcheck.config_plans.devices import Habits, by_length, by_meaning
from tipcheck.config_plans.options import accepts, names_option
from tipcheck.config_plans.reading import field_of, flag_meant
from tipcheck.config_plans.text import Config, Line, key_of, second_field, shorten
from tipcheck.config_plans.words import ShellTextError, split_command, split_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tipcheck.config_plans.profile import LineSpec, Profile

MODES = frozenset({
    "lite_train_lite_infer", "lite_train_whole_infer", "whole_train_whole_infer", "whole_infer",
    "klquant_whole_infer", "benchmark_train",
})  # fmt: skip
_DEVICES = frozenset({"True", "False", "gpu", "cpu", "null"})


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; a ``Finding`` without its file."""

    line: int | None
    level: str
    rule: str
    message: str
    suggestion: str


def text_problems(config: Config) -> Iterator[Problem]:
    """Yield what is wrong with the text itself, whatever the profile."""
    if config.raw[0].startswith("\ufeff"):
        yield Problem(
            1, "warning", "bom", "the file starts with a byte order mark", "save it without one"
        )
    returns = [number for number, text in enumerate(config.raw, 1) if text.endswith("\r")]
    if returns:
        yield Problem(
            returns[0],
            "error",
            "crlf",
            f"{len(returns)} line(s) end in CRLF; the bash takes the CR for a part of the value",
            "convert the file: sed -i 's/\\r$//' FILE",
        )
    last = max((n for n, text in enumerate(config.raw, 1) if text.strip()), default=0)
    for number, text in enumerate(config.raw, 1):
        if not text and number < last:
            yield Problem(
                number,
                "warning",
                "empty-line",
                "the bash does not count empty lines, so what follows moves up by one",
                "remove the line, or write ## or null:null where the layout has a line here",
            )
    for line in config.lines:
        yield from _blanks(line)


def _blanks(line: Line) -> Iterator[Problem]:
    text = line.text.rstrip("\r")
    value = second_field(text)
    if value.strip() == "null" and value != "null":
        yield Problem(
            line.number,
            "warning",
            "null-with-blank",
            f"{value!r} is not null for the bash, which then uses it as a value",
            f"write {key_of(text)}:null",
        )
    elif text != text.rstrip() and text.strip():
        yield Problem(
            line.number, "note", "trailing-blanks", "blanks at the end of the line", "remove them"
        )


def line_problems(config: Config, profile: Profile) -> Iterator[Problem]:
    """Yield what is wrong with each line for what the profile says it is."""
    for number in sorted(profile.lines):
        spec, line = profile.lines[number], config.counted(number)
        if line is None or spec.is_layout:
            continue
        clean = Line(line.number, line.text.rstrip("\r").removeprefix("\ufeff"))
        yield from _form(clean, spec, profile)
        yield from _lost(clean, spec, profile)
        yield from _value(clean, spec, profile)
    yield from _trainers(config, profile)
    yield from _passed_on(config, profile)
    yield from _lengths(config, profile)


def _form(line: Line, spec: LineSpec, profile: Profile) -> Iterator[Problem]:
    text = line.text
    key = key_of(text).strip()
    pattern = spec.key or spec.usual
    if mark_of(text) in {HEADER, SEPARATOR}:
        if spec.kind != "text" and spec.uses != "none":
            yield _expected(line, spec, "warning", "a separator stands where a value is expected")
    elif ":" not in text:
        yield _expected(line, spec, "note", "the line has no colon, so it has no value")
    elif key != "null" and not (pattern and matches(pattern, key)):
        yield from _other_key(line, spec, profile, key)


def _other_key(line: Line, spec: LineSpec, profile: Profile, key: str) -> Iterator[Problem]:
    """Yield what is wrong with a key that does not belong to its line."""
    if spec.key:
        yield _expected(line, spec, "warning", f"{key!r} is not the key of this line")
    elif spec.usual and key.startswith("-"):
        yield _expected(line, spec, "warning", f"{key!r} is an option, not the key of this line")
    elif not (spec.often and looks_like(spec.often, key)):
        owners = [other for other in profile.lines.values() if _owns(other, key)]
        if not owners and spec.often:
            owners = [o for o in profile.lines.values() if o.often and looks_like(o.often, key)]
        if owners:
            about = " or ".join(f"{other.number} ({other.about})" for other in owners)
            what = f"{key!r} looks like the key of line {about}; only the position counts"
            yield _expected(line, spec, "note" if spec.usual else "warning", what)


def _owns(spec: LineSpec, key: str) -> bool:
    pattern = spec.key or spec.usual
    return bool(pattern) and matches(pattern, key)


def _lost(line: Line, spec: LineSpec, profile: Profile) -> Iterator[Problem]:
    """Yield the parts of a value that the chain's own functions lose."""
    read, whole = field_of(line.text, spec, profile), line.text.partition(":")[2]
    used = spec.kind != "ignored" and spec.uses != "none" and spec.part == "value"
    if whole in {"-n", "-e", "-E"}:
        yield Problem(
            line.number,
            "warning",
            "value-eaten",
            "the value is an option of the bash's echo and gets lost",
            "write it with something before it",
        )
    elif used and read != whole and ":" in whole:
        yield Problem(
            line.number,
            "warning",
            "value-cut-at-colon",
            f"the bash reads {shorten(read)} of {shorten(whole)}",
            "write a value without a colon",
        )


def _expected(line: Line, spec: LineSpec, level: str, what: str) -> Problem:
    about = f" ({spec.about})" if spec.about else ""
    suggestion = f"line {spec.number} is expected to look like {spec.example!r}{about}"
    return Problem(line.number, level, "key-class", what, suggestion)


def _value(line: Line, spec: LineSpec, profile: Profile) -> Iterator[Problem]:
    value = field_of(line.text, spec, profile)
    if spec.kind == "per-mode":
        yield from _modes(line, value)
    elif spec.kind in {"flags", "flag"} or spec.name == "infer_quants":
        yield from _flags(line, spec, value)
    elif spec.kind == "gpus":
        yield from _gpus(line, value)
    if spec.kind in {"command", "text", "python"} and spec.uses != "none":
        try:
            split_command(value)
        except ShellTextError as error:
            yield Problem(
                line.number,
                "error",
                "shell-text",
                f"a shell would not pass this on as text: {error}",
                "put the text in single quotes, or take it out",
            )


def _modes(line: Line, value: str) -> Iterator[Problem]:
    stripped = value.strip()
    if stripped in {"null", ""}:
        return
    for item in split_list(value):
        mode, equals, _ = item.partition("=")
        if not equals:
            yield Problem(
                line.number,
                "warning",
                "never-matches",
                f"{shorten(item)} is for no mode, so the option is never passed on",
                f"write it for a mode, as in {key_of(line.text)}:lite_train_lite_infer={item}",
            )
        elif mode.strip() not in MODES:
            yield Problem(
                line.number,
                "warning",
                "unknown-mode",
                f"{mode!r} is no mode, so its value is never used",
                f"write one of {', '.join(sorted(MODES))}",
            )
        elif mode != mode.strip():
            yield Problem(
                line.number,
                "warning",
                "never-matches",
                f"{mode!r} has a blank, so the bash never finds it",
                f"write {mode.strip()}=…",
            )


def _flags(line: Line, spec: LineSpec, value: str) -> Iterator[Problem]:
    for item in split_list(value):
        if item.strip() in _DEVICES or item.strip() == "":
            continue
        meant = flag_meant(item)
        if meant:
            yield Problem(
                line.number,
                "warning",
                "misspelt-flag",
                f"{item!r} is neither True nor False",
                f"write {meant}",
            )
        elif spec.name == "device":
            yield Problem(
                line.number,
                "warning" if any(map(flag_meant, split_list(value))) else "error",
                "never-matches",
                f"{item!r} is none of True, False, gpu and cpu, so nothing is run for it",
                "write True|False or gpu|cpu",
            )


def _gpus(line: Line, value: str) -> Iterator[Problem]:
    whole = line.text.split(":", 1)[-1]
    for entry in split_list(whole if whole.startswith(value) else value):
        meant, taken = by_meaning(entry, Habits()), by_length(entry, Habits())
        if meant is None:
            level = "warning" if re.fullmatch(r"[\w.,]+;[\d,]+", entry) else "error"
            yield Problem(
                line.number,
                level,
                "gpu-list",
                f"{entry!r} is no list of GPU ids",
                "write ids as in 0|0,1, several machines as in IP,IP;0,1, or -1 for none",
            )
        elif (meant.kind, meant.gpu) != (taken.kind, taken.gpu):
            yield Problem(
                line.number,
                "warning",
                "gpu-list-by-length",
                f"the bash judges {entry!r} by its length and starts another kind of training",
                "without --as-bash the entry is read for what it says",
            )


def _trainers(config: Config, profile: Profile) -> Iterator[Problem]:
    spec = profile.by_name.get("trainers")
    if spec is None or spec.kind != "trainers" or (line := config.counted(spec.number)) is None:
        return
    commands = {}
    for other in profile.lines.values():
        if spec.number < other.number <= spec.number + 6 and (at := config.counted(other.number)):
            commands[key_of(at.text)] = (at.number, field_of(at.text, other, profile))
    for trainer in split_list(field_of(line.text.rstrip("\r"), spec, profile)):
        number, command = commands.get(trainer, (None, ""))
        if number is None:
            yield Problem(
                line.number,
                "note",
                "unknown-trainer",
                f"no line is named {trainer!r}; the chain takes the normal training or none",
                f"write one of {', '.join(key for key in commands if key != 'null')}",
            )
        elif command == "null":
            yield Problem(
                number, "warning", "trainer-without-command",
                f"line {line.number} asks for {trainer!r}, whose command is null: nothing is run",
                f"give the command, or take {trainer!r} out of line {line.number}",
            )  # fmt: skip


def _passed_on(config: Config, profile: Profile) -> Iterator[Problem]:
    """Yield the lines that look like options and that the chain reads but never passes on."""
    from tipcheck.config_plans.find import root_of  # noqa: PLC0415

    for spec in profile.lines.values():
        line = config.counted(spec.number)
        if line is None or spec.uses != "none" or spec.kind not in {"list", "text"}:
            continue
        key, value = key_of(line.text).strip(), field_of(line.text, spec, profile).strip()
        norm = profile.by_name.get("norm")
        if key in {"null", ""} or value in {"null", ""} or norm is None:
            continue
        command = config.counted(norm.number)
        script = field_of(command.text, norm, profile) if command else ""
        root = str(root_of(config.path))
        if names_option(script, key) or accepts(root, script, key, value.split("|")[0]):
            continue  # the second is passed on, which the corrections of the plan tell
        yield Problem(
            line.number,
            "note",
            "line-not-passed-on",
            f"the chain reads {key} and never passes it on; the training script is not seen to "
            "know it, so nothing changes",
            f"put {key}={value} into line {norm.number} if the training needs it",
        )


def _lengths(config: Config, profile: Profile) -> Iterator[Problem]:
    for longer, shorter in (("infer_models", "infer_exports"), ("infer_models", "infer_quants")):
        first, second = profile.by_name.get(longer), profile.by_name.get(shorter)
        if first is None or second is None or second.kind == "ignored":
            continue
        one, two = config.counted(first.number), config.counted(second.number)
        if one is None or two is None:
            continue
        wanted = len(split_list(field_of(one.text, first, profile)))
        there = len(split_list(field_of(two.text, second, profile)))
        if wanted > max(there, 1):
            yield Problem(
                two.number,
                "warning",
                "list-too-short",
                f"line {one.number} names {wanted} models, this line has {there} value(s)",
                "give one value per model, separated by |",
            )
