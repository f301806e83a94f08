"""A config file as numbered lines, and the small functions that take a line apart.

The position of a line is its whole meaning, so this module is exact about which lines bash counts:
empty ones vanish before it counts, all others stay. The functions mirror the parsing functions of
the chains, oddities included; what is odd is put right elsewhere, by named rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tipcheck.config_plans.words import split_list
from tipcheck.errors import ToolError, UsageError

LARGEST = 4 * 1024 * 1024
"""Bytes; the largest config known has three thousand."""

MOST_LINES = 20_000

_EATEN_BY_ECHO = frozenset({"-n", "-e", "-E", "-ne", "-en", "-nE", "-En", "-eE", "-Ee"})


@dataclass(frozen=True, slots=True)
class Line:
    """One line that bash counts.

    Attributes:
        number: where it stands in the file, counted from 1.
        text: without the newline.
    """

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Config:
    """The text of a config file.

    Attributes:
        path: the file, as the user named it.
        lines: those that are not empty, in order.
        raw: every line of the file, its line end without the newline included.
    """

    path: Path
    lines: tuple[Line, ...]
    raw: tuple[str, ...]

    def where(self, number: int | None = None) -> str:
        """Return ``file`` or ``file:line`` for an error."""
        return str(self.path) if number is None else f"{self.path}:{number}"

    def counted(self, index: int) -> Line | None:
        """Return the line that bash takes for line ``index`` (from 1), or None past the end."""
        return self.lines[index - 1] if 0 < index <= len(self.lines) else None


def read(path: Path) -> Config:
    """Read a config file.

    Raises:
        UsageError: there is no such file, or it cannot be a config.
        ToolError: the file exists but cannot be read.
    """
    try:
        if path.is_dir():
            raise UsageError("is a folder, not a config", where=str(path), hint="name a file in it")
        if path.exists() and not path.is_file():
            raise UsageError("is no regular file", where=str(path), hint="name a file")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError("no such file", where=str(path), hint="check the path") from None
    except (OSError, ValueError) as error:
        raise ToolError(f"cannot be read ({error})", where=str(path)) from None
    if len(data) > LARGEST:
        raise UsageError(f"has over {LARGEST} bytes; a config has a few thousand", where=str(path))
    return parse(data, path)


def parse(data: bytes, path: Path) -> Config:
    """Return the lines of a config's bytes.

    Raises:
        UsageError: the bytes are no text, or hold no line.
    """
    if b"\0" in data:
        raise UsageError("is a binary file, not a config", where=str(path))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError("is not UTF-8 text", where=f"{path}:{line}") from None
    raw = text.split("\n")
    if len(raw) > MOST_LINES:
        raise UsageError(f"has {len(raw)} lines; a config has under a hundred", where=str(path))
    if raw[-1] == "":
        raw.pop()
    lines = tuple(Line(number, line) for number, line in enumerate(raw, 1) if line)
    if not lines:
        raise UsageError("is empty", where=str(path), hint="a config starts with model_name:…")
    return Config(path, lines, tuple(raw))


def key_of(text: str) -> str:
    """Return what stands before the first colon; one that ``echo`` takes for an option is lost."""
    return _echoed(text.split(":", 1)[0])


def second_field(text: str) -> str:
    """Return the text between the first colon and the second: most chains read a value so."""
    fields = text.split(":", 2)
    return _echoed(fields[1]) if len(fields) > 1 else ""


def after_colon(text: str) -> str:
    """Return the text after the first colon, or the whole line where there is none."""
    return _echoed(text.split(":", 1)[-1])


def third_field(text: str) -> str:
    """Return the text between the second colon and the third."""
    fields = text.split(":", 3)
    return fields[2] if len(fields) > 2 else ""


def for_mode(value: str, mode: str) -> str:
    """Return what ``mode=value|mode=value`` says for a mode, or nothing: the first match counts."""
    for item in split_list(value):
        fields = item.split("=", 2)
        if fields[0] == mode:
            return _echoed(fields[1]) if len(fields) > 1 else ""
    return ""


def modes_of(value: str) -> list[str]:
    """Return the modes that a mode-keyed value names."""
    return [item.split("=", 1)[0] for item in split_list(value) if "=" in item]


def option(key: str, value: str) -> str:
    """Return ``key=value``, or one blank where either of them says that there is no option."""
    if key == "null" or value in {"null", " ", ""}:
        return " "
    return f"{key}={value}"


def shorten(text: str) -> str:
    """Return a line in quotes, cut where it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "…")


def visible(text: str) -> str:
    """Return a text whose control characters are written out, safe to print on a terminal."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def _echoed(text: str) -> str:
    return "" if text in _EATEN_BY_ECHO else text
