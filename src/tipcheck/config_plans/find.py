"""Finds the profile that reads a config, from the file and the repo around it.

Evidence counts in this order: the name the user gives, the repo (its name in the path, files only
it has, its own chain script), the keys in the file. Two that fit equally, or none, is an error that
says what to do; a config is never read by a profile that merely comes close.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.config_plans.layout import (
    Gap,
    agreement,
    fits,
    gaps,
    layout_length,
    misfits,
)
from tipcheck.config_plans.profile import Profile, load, names
from tipcheck.config_plans.text import Config, key_of, shorten
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

_FEW = 2
"""Lines that may be missing or inserted for a layout still to be known by the others."""

_REST = 4
"""Lines that may follow a layout without being one of its sections."""

SCRIPT = "test_train_inference_python.sh"
_VERSION = re.compile(r"[-_.](v?\d[\w.]*|main|master|develop|dev|release.*)")
_CHAIN_FOLDER = re.compile(r"test_tipc(_\w+)?")


def root_of(path: Path) -> Path:
    """Return the folder the chain of a config is started in: the one that holds ``test_tipc``."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links
    for parent in absolute.parents:
        if _CHAIN_FOLDER.fullmatch(parent.name) and not _is_inside_chain(parent.parent):
            return parent.parent
    return absolute.parent


def _is_inside_chain(folder: Path) -> bool:
    """Return whether a folder only holds supplements to the chain of the folder above it."""
    inside = _CHAIN_FOLDER.fullmatch(folder.parent.name) is not None
    return inside and not (folder / ".git").exists()


def profile_for(config: Config, name: str | None = None, *, as_bash: bool = False) -> Profile:
    """Return the profile to read a config with.

    Args:
        config: the config.
        name: of the profile that the user wants.
        as_bash: whether to read it as the repo's own script does even if its lines do not fit.

    Raises:
        UsageError: none fits, several fit equally, or the one named does not exist.
    """
    if name is not None:
        return load(name)
    profiles = [load(known) for known in names()]
    root = root_of(config.path)
    candidates = _best(profiles, root)
    if len(candidates) == 1:
        return candidates[0] if as_bash else _by_layout(config, candidates[0], profiles)
    if candidates:
        raise _several(config, candidates)
    script = _script_of(root)
    if script and "tipcheck" not in script:
        raise UsageError(
            f"no profile describes test_tipc/{SCRIPT} of this repo",
            where=str(config.path),
            hint="choose a profile with --profile, or record what the script starts: "
            f"tipcheck record test_tipc/{SCRIPT} {config.path} MODE",
        )
    fitting = [p for p in profiles if not p.evidence.one_repo and fits(config, p)]
    if not fitting:
        raise _nothing_fits(config, profiles)
    if as_bash and not script:
        raise UsageError(
            "nothing around the config says which chain its repo has, so what that would start "
            "cannot be told",
            where=str(config.path),
            hint=f"choose a profile with --profile: {', '.join(p.name for p in fitting)}",
        )
    chosen = [p for p in fitting if p.evidence.default or p.evidence.anywhere]
    if len(chosen) == 1:
        return chosen[0]
    raise _several(config, _by_keys(config, fitting))


def _by_layout(config: Config, of_repo: Profile, profiles: Iterable[Profile]) -> Profile:
    """Return the profile of the repo, or one of a layout found anywhere if only that fits."""
    if fits(config, of_repo):
        return of_repo
    anywhere = [profile for profile in profiles if profile.evidence.anywhere]
    free = [profile for profile in anywhere if fits(config, profile)]
    if not free:
        near = [(found, p) for p in anywhere if (found := _near(config, p)) is not None]
        best = min(near, key=lambda one: (len(one[0]), -agreement(config, one[1])), default=None)
        return best[1] if best else of_repo
    return free[0] if len(free) == 1 else of_repo


def _near(config: Config, profile: Profile) -> list[Gap] | None:
    """Return the few lines in which a config differs from a layout, None if it is another."""
    found = gaps(config, profile)
    longer = layout_length(config, profile) - len(profile.lines)
    return found if len(found) <= _FEW and -_FEW <= longer <= _REST else None


def _by_keys(config: Config, fitting: list[Profile]) -> list[Profile]:
    likely = [profile for profile in fitting if _keys_match(profile, config)]
    return likely or fitting


def _several(config: Config, candidates: list[Profile]) -> UsageError:
    return UsageError(
        "the lines fit several profiles: " + "; ".join(f"{p.name}: {p.about}" for p in candidates),
        where=str(config.path),
        hint=f"choose one of them, as in --profile {candidates[0].name}",
    )


def _best(profiles: Iterable[Profile], root: Path) -> list[Profile]:
    """Return the profiles that most speaks for: the longest name, own files, or the script."""
    lengths = _named(root.parts)
    if lengths:
        longest = max(lengths.values())
        return [profile for profile in profiles if lengths.get(profile.name) == longest]
    marked = [p for p in profiles if any(_exists(root, marker) for marker in p.evidence.markers)]
    if marked:
        return marked
    script = _script_of(root)
    return [
        profile
        for profile in profiles
        if script
        and profile.evidence.script
        and all(text in script for text in profile.evidence.script)
    ]


def _exists(root: Path, marker: str) -> bool:
    return os.path.exists(f"{root}/{marker}")  # noqa: PTH110 - half the time of a Path


@lru_cache(maxsize=1024)
def _named(parts: tuple[str, ...]) -> dict[str, int]:
    """Return the profiles whose repo a path ends with, with the length of its name."""
    found: dict[str, int] = {}
    for name in names():
        for repo in load(name).evidence.repos:
            wanted = repo.split("/")
            tail = parts[-len(wanted) :]
            if len(tail) == len(wanted) and all(map(_same_repo, tail, wanted)):
                found[name] = max(found.get(name, 0), len(repo))
    return found


def _same_repo(part: str, name: str) -> bool:
    part, name = part.lower(), name.lower()
    return part == name or (
        part.startswith(name) and bool(_VERSION.fullmatch(part.removeprefix(name)))
    )


def _script_of(root: Path) -> str:
    try:
        return (root / "test_tipc" / SCRIPT).read_text("utf-8", "replace")
    except OSError:
        return ""


def _keys_match(profile: Profile, config: Config) -> bool:
    keys = profile.evidence.keys
    return bool(keys) and all(
        (line := config.counted(number)) and pattern.fullmatch(key_of(line.text).strip())
        for number, pattern in keys.items()
    )


def shifted(config: Config) -> tuple[Profile, list[Gap]] | None:
    """Return the profile that a config would fit but for a line or two, and those lines.

    None where a profile fits, or where none comes close enough to tell which line it is.
    """
    near: list[tuple[int, bool, float, Profile, list[Gap]]] = []
    for profile in map(load, names()):
        if profile.evidence.one_repo:
            continue
        if fits(config, profile):
            return None
        if found := _near(config, profile):
            keys = _keys_match(profile, config)
            near.append((-len(found), keys, agreement(config, profile), profile, found))
    if not near:
        return None
    best = max(near, key=lambda one: one[:3])
    return best[3], best[4]


def _nothing_fits(config: Config, profiles: Iterable[Profile]) -> UsageError:
    if near := shifted(config):
        profile, found = near
        return UsageError(
            f"{found[0].describe()} (the {profile.layout} layout, as in profile {profile.name})",
            where=config.where(found[0].number),
            hint="correct the line, or choose another profile with --profile; 'tipcheck lint' "
            "lists all problems",
        )
    nearest = max(profiles, key=lambda profile: agreement(config, profile))
    spec, line = next(misfits(config, nearest), (nearest.lines[2], config.lines[0]))
    return UsageError(
        f"no profile fits; the nearest, {nearest.name}, expects "
        f"{spec.example or spec.name!r} in line {spec.number} and finds {shorten(line.text)}",
        where=config.where(line.number),
        hint=f"choose one with --profile ({', '.join(names())}), or use tipcheck record",
    )
