"""Tells whether the lines of a config stand where its profile expects them.

Every line means what its number says, so one line too few or too many turns all that follow into
something else, and the bash half-runs it in silence. The known keys, section headers and
separators are landmarks: where they disagree with the profile, the lines are aligned with it, and
the gaps of the best alignment are the lines that are missing or inserted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tipcheck.config_plans.align import agrees, find_gaps, mark_of, matches
from tipcheck.config_plans.profile import LineSpec, Profile
from tipcheck.config_plans.text import shorten
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tipcheck.config_plans.text import Config, Line


_LEAST_AGREEMENT = 0.5
"""Share of the landmarks that a config of a layout shows, whatever else is wrong in it."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A line that is missing, or one that should not be there.

    Attributes:
        number: the line of the file where it shows.
        expected: what is missing there, or None for an inserted line.
        text: the line that stands there.
    """

    number: int
    expected: LineSpec | None
    text: str

    def describe(self) -> str:
        """Return what is wrong, for a message."""
        if self.expected is None:
            return f"the line {shorten(self.text)} does not belong here; all after it is shifted"
        what = self.expected.example or self.expected.name
        about = f" ({self.expected.about})" if self.expected.about else ""
        return f"a line like {what!r}{about} is missing here; all after it is shifted"


def fits(config: Config, profile: Profile) -> bool:
    """Return whether the lines of a config stand where a profile has them."""
    return _has_landmarks(config, profile) and not gaps(config, profile)


def check_layout(config: Config, profile: Profile) -> None:
    """Refuse a config whose lines are shifted against the profile, or are of another layout.

    Raises:
        UsageError: a line is missing or inserted, or most lines are others than expected.
    """
    found = gaps(config, profile)
    if not found and (stray := foreign(config, profile)):
        spec, line = stray
        raise UsageError(
            f"the lines are not those of profile {profile.name}, which expects "
            f"{spec.example or spec.name!r} here and finds {shorten(line.text)}",
            where=config.where(line.number),
            hint="choose another profile with --profile, or use tipcheck record",
        )
    if found:
        raise UsageError(
            f"{found[0].describe()} (profile {profile.name})",
            where=config.where(found[0].number),
            hint="correct the line, or choose another profile; 'tipcheck lint' lists all problems",
        )


def gaps(config: Config, profile: Profile) -> list[Gap]:
    """Return the lines that are missing or inserted, none if the layout is right."""
    lines = _without_tail(config, len(profile.lines))
    found = find_gaps(profile, tuple(mark_of(line.text) for line in lines))
    numbers = sorted(profile.lines)
    gaps = []
    for missing, index in found:
        at = lines[min(index, len(lines) - 1)]
        spec = None if missing is None else profile.lines[numbers[missing]]
        gaps.append(Gap(at.number, spec, at.text))
    return gaps


def foreign(config: Config, profile: Profile) -> tuple[LineSpec, Line] | None:
    """Return the first line that tells a config of another layout, None if it is of this one."""
    if agreement(config, profile) >= _LEAST_AGREEMENT:
        return None
    others = (one for one in misfits(config, profile) if one[0].key or one[0].kind == "header")
    return next(others, (profile.lines[2], config.lines[0]))


def layout_length(config: Config, profile: Profile) -> int:
    """Return how many lines of a config a profile of this length would read."""
    return len(_without_tail(config, len(profile.lines)))


def _without_tail(config: Config, size: int) -> Sequence[Line]:
    """Return the lines up to the benchmark sections, which are read by their headers alone."""
    for index, line in enumerate(config.lines):
        if index > size // 2 and is_tail_header(line.text):
            return config.lines[:index]
    return config.lines[: size + 8]


def is_tail_header(text: str) -> bool:
    """Return whether a line starts one of the benchmark sections after the layout."""
    return text.startswith("==") and text.rstrip().endswith("==") and "benchmark" in text


def misfits(config: Config, profile: Profile) -> Iterator[tuple[LineSpec, Line]]:
    """Yield each line whose key or form is not what the profile has there."""
    for number, spec in profile.lines.items():
        line = config.counted(number)
        if line is not None and not agrees(spec, mark_of(line.text)):
            yield spec, line


def agreement(config: Config, profile: Profile) -> float:
    """Return how much of a profile's landmarks a config shows, from 0 to 1."""
    landmarks = [spec for spec in profile.lines.values() if spec.key or spec.kind == "header"]
    right = sum(
        1
        for spec in landmarks
        if (line := config.counted(spec.number)) is not None and agrees(spec, mark_of(line.text))
    )
    return right / len(landmarks)


def _has_landmarks(config: Config, profile: Profile) -> bool:
    """Return whether the lines stand that no config of this layout can do without."""
    return all(
        (line := config.counted(spec.number)) is not None and matches(spec.key, mark_of(line.text))
        for spec in _needed(profile)
    )


@lru_cache(maxsize=64)
def _needed(profile: Profile) -> tuple[LineSpec, ...]:
    needed = {"model_name", "python", "trainers"}
    if "trainers" not in profile.by_name or not profile.by_name["trainers"].key:
        needed.add("infer")
    return tuple(spec for spec in profile.lines.values() if spec.name in needed)
