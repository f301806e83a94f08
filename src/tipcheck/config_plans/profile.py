"""Profiles: data that says what the lines of a family of configs mean and what commands they make.

A profile is one JSON file in ``profiles/``; the guide on configs describes its parts. One may
``extend`` another and change lines and blocks. This module reads them, checks them and keeps them
compiled; a new repo is a new file, no new code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from tipcheck.config_plans.flow import compile_flow
from tipcheck.config_plans.operations import Flow
from tipcheck.errors import UsageError

FOLDER = Path(__file__).parent / "profiles"

VALUE_KINDS = frozenset({
    "text", "name", "python", "gpus", "list", "flags", "flag", "per-mode", "command", "trainers",
    "ignored", "header", "separator",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class LineSpec:
    """What one line means.

    Attributes:
        number: which line, counted from 1.
        name: what the profile calls it.
        kind: of its value; one of ``VALUE_KINDS``.
        key: the key that has to stand there, as a pattern, or nothing where any may; ``null``
            always may.
        usual: the key that mostly stands there; it tells where a line is missing.
        often: what the repo's own option mostly looks like; any other may stand there, so it only
            helps to tell where a line is missing.
        part: which part of the line is the value: ``value``, ``second`` or ``third`` field.
        about: what it is, for messages.
        example: how such a line looks.
        uses: what of it comes into a command: ``key``, ``value``, ``both`` or ``none``.
        third: name of a second variable, for the text after the second colon.
    """

    number: int
    name: str
    kind: str = "text"
    key: str = ""
    usual: str = ""
    often: str = ""
    part: str = "value"
    about: str = ""
    example: str = ""
    uses: str = "both"
    third: str = ""

    @property
    def is_layout(self) -> bool:
        """Whether the line is a header or separator without a meaning."""
        return self.kind in {"header", "separator"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a profile.

    Attributes:
        repos: names of repos, as they appear in a path.
        markers: files or folders that only such a repo has, relative to its root.
        script: texts that the repo's own script holds.
        keys: patterns that keys match, by line.
        default: whether it is taken where nothing speaks for another of the same layout.
        anywhere: whether files of its layout lie in repos that have another profile.
    """

    repos: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    keys: Mapping[int, re.Pattern[str]] = field(default_factory=dict)
    default: bool = False
    anywhere: bool = False

    @property
    def one_repo(self) -> bool:
        """Whether the profile is made for repos known by name, and for no others."""
        return not (self.markers or self.script or self.keys or self.default or self.anywhere)


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What the lines of a family of configs mean, and the flow of commands they make.

    Attributes:
        name: how it is chosen.
        about: one sentence on it; where two fit, this tells them apart.
        layout: name of the line layout, shared by profiles that read the same files.
        values: ``second-field`` or ``after-colon``, see ``text``.
        last_line: the last line the chain reads, or None for all.
        lines: by number.
        modes: those its chain knows.
        fixed: variables with fixed values.
        after: lines that stand right after a section header, by name.
        evidence: what speaks for it.
        flow: what to do.
    """

    name: str
    about: str
    layout: str
    values: str
    last_line: int | None
    lines: Mapping[int, LineSpec]
    modes: tuple[str, ...]
    fixed: Mapping[str, str]
    after: Mapping[str, str]
    evidence: Evidence
    flow: Flow

    @property
    def by_name(self) -> dict[str, LineSpec]:
        """The lines by the name that the profile gives them."""
        return {spec.name: spec for spec in self.lines.values()}


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Return the names of the profiles that can be chosen."""
    return tuple(
        sorted(
            path.stem for path in FOLDER.glob("*.json") if not _source(path.stem).get("abstract")
        )
    )


@lru_cache(maxsize=64)
def load(name: str) -> Profile:
    """Return a profile by name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in names():
        raise UsageError(
            f"no profile is named {name!r}", hint=f"choose one of {', '.join(names())}"
        )
    return compile_profile(name, _merged(name))


def compile_profile(name: str, source: Mapping[str, Any]) -> Profile:
    """Compile a profile from its JSON form, its base already merged in."""
    lines = {
        int(number): LineSpec(number=int(number), **spec)
        for number, spec in source["lines"].items()
        if spec is not None
    }
    unknown = {spec.kind for spec in lines.values()} - VALUE_KINDS
    if unknown:
        raise ValueError(f"profile {name}: no kind of value {sorted(unknown)}")
    found = source.get("found_by", {})
    return Profile(
        name=name,
        about=source["about"],
        layout=source["layout"],
        values=source["values"],
        last_line=source.get("last_line"),
        lines=lines,
        modes=tuple(source["modes"]),
        fixed=source.get("fixed", {}),
        after=source.get("after", {}),
        evidence=Evidence(
            repos=tuple(found.get("repos", ())),
            markers=tuple(found.get("markers", ())),
            script=tuple(found.get("script", ())),
            keys={int(line): re.compile(text) for line, text in found.get("keys", {}).items()},
            default=found.get("default", False),
            anywhere=found.get("anywhere", False),
        ),
        flow=compile_flow(
            source["blocks"]["start"], {**source["blocks"], "habits": source.get("habits", {})}
        ),
    )


@lru_cache(maxsize=64)
def _source(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return loaded


def _merged(name: str) -> dict[str, Any]:
    source = _source(name)
    if "extends" not in source:
        return source
    base = _merged(source["extends"])
    merged = {**base, **source}
    merged.pop("abstract", None)
    for part in ("lines", "blocks", "fixed"):
        merged[part] = {**base.get(part, {}), **source.get(part, {})}
    if "found_by" not in source:
        merged["found_by"] = {}
    return merged
