"""Puts the five lines of a check behind each save, and takes exactly those away again.

The text is cut and joined, never written anew from a tree: everything else keeps its bytes, line
ends and encoding included. A mark at the end of the first line says that the lines are ours, and
what was special about the place, which is all that it takes to undo them.
"""

from __future__ import annotations

import codecs
import difflib
import io
import re
import tokenize
from dataclasses import dataclass

from tipcheck.backends.source_patch.spots import Spot, find_spots
from tipcheck.errors import UsageError

MODULE = "check_inference"
FUNCTION = "verify_paddle_inference_correctness"
IMPORT = f"from {MODULE} import {FUNCTION}"
_MARK = "  # tipcheck patch"
_ENDED_OPEN = ": the file ended here without a line end"
_LINES = 5
_INLINE = re.compile(
    rf"; {re.escape(IMPORT)}; (?P<layer>\w+) = .*?; (?P<path>\w+) = .*?; (?P<shape>\w+) = .*?; "
    rf"{FUNCTION}\((?P=layer), (?P=path), (?P=shape)\)"
)


@dataclass(frozen=True, slots=True)
class Words:
    """What the user says instead of what can be seen in the source; None leaves it to that."""

    layer: str | None = None
    path: str | None = None
    image_shape: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A source file: its text, and what it takes to write it back as it was."""

    text: str
    encoding: str
    mark: bytes = b""

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        return self.mark + self.text.encode(self.encoding)


def decode(data: bytes, where: str) -> Source:
    """Read a source file as Python does, line ends untouched.

    Raises:
        UsageError: its bytes are no text in the encoding that it claims.
    """
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    body = data[len(mark) :]
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(body).readline)[0]
        return Source(body.decode(encoding), encoding, mark)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        told = " ".join(str(error).split())
        raise UsageError(f"cannot be read as Python ({told})", where=where) from None


def patched(source: Source, words: Words, where: str) -> tuple[Source, int]:
    """Return a source with a check behind each save that has none, and how many those are.

    Raises:
        UsageError: it has no save, or one that cannot be checked where it stands.
    """
    spots = find_spots(source.text, where)
    if not spots:
        raise UsageError(
            "has no paddle.jit.save",
            where=where,
            hint="name the file in which the save itself stands",
        )
    lines = source.text.splitlines(keepends=True)
    together: dict[int, list[Spot]] = {}
    for spot in spots:
        together.setdefault(spot.end_line, []).append(spot)
    added = 0
    for end_line in sorted(together, reverse=True):
        if not _is_checked(lines, together[end_line][0]):
            _insert(lines, together[end_line], words)
            added += len(together[end_line])
    return Source("".join(lines), source.encoding, source.mark), added


def _insert(lines: list[str], spots: list[Spot], words: Words) -> None:
    """Put the checks of all saves of one line behind it."""
    spot = spots[-1]
    last = lines[spot.end_line - 1]
    if spot.inline:
        at = spot.end_column
        code = "".join(f"; {'; '.join(_code(each, words))}" for each in spots)
        lines[spot.end_line - 1] = last[:at] + code + last[at:]
        return
    first = lines[spots[0].line - 1]
    indent = first[: len(first) - len(first.lstrip(" \t\f"))]
    ending = _line_end(lines)
    mark = _MARK
    if not last.endswith(("\n", "\r")):
        lines[spot.end_line - 1] = last + ending
        mark += _ENDED_OPEN
    block: list[str] = []
    for each in spots:
        code_lines = _code(each, words)
        block += [code_lines[0] + mark, *code_lines[1:]]
        mark = _MARK
    lines[spot.end_line : spot.end_line] = [f"{indent}{line}{ending}" for line in block]


def _code(spot: Spot, words: Words) -> list[str]:
    values = {
        "layer": words.layer or spot.layer,
        "path": words.path or spot.path,
        "image_shape": words.image_shape or spot.image_shape,
    }
    names = {
        name: f"checked_{name}"
        if (name not in spot.own if value == name else name in spot.taken)
        else name
        for name, value in values.items()
    }
    given = ", ".join(names.values())
    return [
        IMPORT,
        *(f"{names[name]} = {value}" for name, value in values.items()),
        f"{FUNCTION}({given})",
    ]


def _line_end(lines: list[str]) -> str:
    for line in lines:
        for ending in ("\r\n", "\n", "\r"):
            if line.endswith(ending):
                return ending
    return "\n"


def _is_checked(lines: list[str], spot: Spot) -> bool:
    if spot.inline:
        return _INLINE.search(lines[spot.end_line - 1]) is not None
    following = lines[spot.end_line] if spot.end_line < len(lines) else ""
    return following.strip().startswith(IMPORT)


def unpatched(source: Source) -> tuple[Source, int]:
    """Return a source as it was before it was patched, and how many checks were in it."""
    lines = source.text.splitlines(keepends=True)
    kept: list[str] = []
    removed = place = 0
    while place < len(lines):
        line = lines[place]
        if _starts_block(lines, place):
            removed += 1
            if line.rstrip("\r\n").endswith(_ENDED_OPEN):
                kept[-1] = kept[-1].rstrip("\r\n")
            place += _LINES
            continue
        shorter, times = _INLINE.subn("", line)
        removed += times
        kept.append(shorter)
        place += 1
    return Source("".join(kept), source.encoding, source.mark), removed


def _starts_block(lines: list[str], place: int) -> bool:
    if not lines[place].strip().startswith(IMPORT + _MARK) or place + _LINES > len(lines):
        return False
    return lines[place + _LINES - 1].strip().startswith(FUNCTION + "(")


def difference(before: Source, after: Source, where: str) -> str:
    """Return the change as a unified diff, line ends of every kind shown as such."""

    def split(source: Source) -> list[str]:
        return [line.rstrip("\r\n") for line in source.text.splitlines(keepends=True)]

    told = difflib.unified_diff(
        split(before), split(after), f"a/{where}", f"b/{where}", lineterm=""
    )
    return "\n".join(told)
