"""Aligns the lines of a config with the lines a profile expects.

Only the mark of a line counts here: its key, or that it is a header, a separator or a comment. A
gap of the best alignment is a line that is missing or inserted. Configs of one layout mostly show
the same marks, so the results are kept.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from tipcheck.config_plans.text import key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcheck.config_plans.profile import LineSpec, Profile

HEADER, SEPARATOR, COMMENT = "==", "##", "#"
_GAP = -5
_LONGEST = 80
_LONGEST_KEPT = 500

Indices = tuple[tuple[int | None, int], ...]
"""Gaps as pairs: index of the missing line or None for an inserted one, index in the file."""


def mark_of(text: str) -> str:
    """Return the mark of a line; those of lines of a usual length are kept."""
    return _mark_of(text) if len(text) <= _LONGEST_KEPT else _mark_of.__wrapped__(text)


@lru_cache(maxsize=8192)
def _mark_of(text: str) -> str:
    text = text.lstrip("\ufeff")
    if text.startswith("=="):
        return HEADER
    if text.startswith("#"):
        return SEPARATOR if text.strip() in {"#", "##", "###"} else COMMENT
    return key_of(text).strip()[:_LONGEST]


def agrees(spec: LineSpec, mark: str) -> bool:
    """Return whether a line with this mark may stand where a profile has ``spec``."""
    if spec.kind == "header":
        return mark == HEADER
    if spec.kind == "separator":
        return mark == SEPARATOR
    if mark == HEADER:
        return False
    if spec.often:
        return mark == "null" or looks_like(spec.often, mark)
    pattern = spec.key or spec.usual
    return not pattern or mark == "null" or matches(pattern, mark)


def matches(pattern: str, key: str) -> bool:
    """Return whether a key is what a pattern asks for."""
    return bool(_compiled(pattern).fullmatch(key))


def looks_like(words: str, key: str) -> bool:
    """Return whether one of the words that keys of a line often have is in a key."""
    return _compiled(f"(?i:.*?(?:{words}).*)").fullmatch(key) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@lru_cache(maxsize=1024)
def find_gaps(profile: Profile, marks: tuple[str, ...]) -> Indices:
    """Return the gaps of the best alignment, in order."""
    specs = [profile.lines[number] for number in sorted(profile.lines)]
    if all(agrees(spec, mark) for spec, mark in zip(specs, marks, strict=False)):
        return ()
    known = "|".join(f"(?:{spec.key or spec.usual})" for spec in specs if spec.key or spec.usual)
    often = "|".join(spec.often for spec in specs if spec.often)
    seen = [(m, matches(known, m), bool(often) and looks_like(often, m)) for m in marks]
    scores = [[_score(spec, *one) for one in seen] for spec in specs]
    return _trace(scores, _fill(scores))


def _score(spec: LineSpec, mark: str, is_known: bool, is_option: bool) -> int:  # noqa: FBT001
    """Return how well a line goes with what the profile has there."""
    if spec.kind == "header":
        return 4 if mark == HEADER else -4
    if spec.kind == "separator":
        return 2 if mark == SEPARATOR else (-4 if mark == HEADER else -2)
    if mark in {HEADER, COMMENT}:
        return -6
    if spec.often:
        return _score_option(spec, mark, is_known, is_option)
    return _score_key(spec, mark, is_known)


def _score_option(spec: LineSpec, mark: str, is_known: bool, is_option: bool) -> int:  # noqa: FBT001
    """Return the same for a line whose key is the repo's own."""
    if mark == "null" or looks_like(spec.often, mark):
        return 1 if mark == "null" else 3
    if is_known:
        return -4
    return -3 if is_option or mark == SEPARATOR else 0


def _score_key(spec: LineSpec, mark: str, is_known: bool) -> int:  # noqa: FBT001
    pattern = spec.key or spec.usual
    if pattern and matches(pattern, mark):
        return 4
    if is_known:
        return -4
    if mark == SEPARATOR:
        return -1 if spec.kind == "text" else -3
    if mark == "null" or not pattern:
        return 0 if pattern else 1
    return -5 if spec.key else -1


def _fill(scores: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the best score of every beginning of the profile with every beginning of the file."""
    width = len(scores[0])
    best = [[column * _GAP for column in range(width + 1)]]
    for number, row in enumerate(scores, 1):
        above = best[-1]
        here = [number * _GAP]
        for column, score in enumerate(row):
            here.append(max(above[column] + score, above[column + 1] + _GAP, here[column] + _GAP))
        best.append(here)
    return best


def _trace(scores: Sequence[Sequence[int]], best: Sequence[Sequence[int]]) -> Indices:
    """Walk back through the best alignment; what follows the profile or the file is no gap."""
    row, column = _end(best)
    gaps: list[tuple[int | None, int]] = []
    while row > 0 or column > 0:
        value = best[row][column]
        if row and column and value == best[row - 1][column - 1] + scores[row - 1][column - 1]:
            row, column = row - 1, column - 1
        elif row and value == best[row - 1][column] + _GAP:
            row -= 1
            gaps.append((row, column))
        else:
            column -= 1
            gaps.append((None, column))
    return tuple(reversed(gaps))


def _end(best: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Return where the best alignment ends: with the last line of the profile or of the file."""
    columns = best[-1]
    rows = [line[-1] for line in best]
    if max(columns) >= max(rows):
        return len(best) - 1, len(columns) - 1 - columns[::-1].index(max(columns))
    return len(rows) - 1 - rows[::-1].index(max(rows)), len(columns) - 1
