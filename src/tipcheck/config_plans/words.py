"""How bash takes text apart, reproduced without a shell.

The chains of the model repos run every command through ``eval`` with ``IFS='|'``. What a program
then receives depends on word splitting, quote removal and the oddities of ``[ … ]``; this module
computes that for the cases whose outcome is certain and refuses the others. Nothing is executed,
and nothing here looks at the file system or the environment.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple

_PLAIN = re.compile(r"[\w \t./:=,+@%^\[\]*?-]*\Z", re.ASCII)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=(.*:)?", re.ASCII | re.DOTALL)
_BRACES = re.compile(r"\{[^{}\s]*\}")
_OPERATORS = {
    ";": "separates commands",
    "&": "separates commands",
    "<": "redirects",
    ">": "redirects",
    "(": "groups commands",
    ")": "groups commands",
}
_BLANKS = " \t\n"


class ShellTextError(ValueError):
    """Text that a shell would evaluate instead of passing it on."""


class UnfinishedTextError(ShellTextError):
    """Text whose last quote or backslash would take in what follows it in the command."""


def split_list(text: str) -> list[str]:
    """Split a list value the way an unquoted expansion is split with ``IFS='|'``.

    A final empty item vanishes, one in the middle stays.
    """
    items = text.split("|")
    if items[-1] == "":
        items.pop()
    return items


class Word(NamedTuple):
    """One argument; ``pattern`` tells whether a shell would look for files of that name."""

    text: str
    pattern: bool


def split_words(command: str, *, bars: str = "blank") -> list[Word]:
    """Return the arguments that ``eval`` passes; quotes and backslashes are removed.

    Args:
        command: the command, as the chain put it together.
        bars: what becomes of a bar. A ``blank`` in ``eval $command`` with ``IFS='|'``, a ``pipe``
            in ``eval "$command"``; ``text`` takes it for a character like others.

    Raises:
        ShellTextError: a shell would expand, redirect or run a part of the text.
    """
    if _PLAIN.match(command):
        pattern = "*" in command or "?" in command
        return [Word(word, pattern and ("*" in word or "?" in word)) for word in command.split()]
    if bars == "blank":
        command = command.replace("|", " ")
    return _Splitter(command, pipes=bars == "pipe").words()


def split_command(command: str) -> list[str]:
    """Return the text of the arguments of a command; see ``split_words``."""
    return [word.text for word in split_words(command)]


def is_plain_text(text: str, *, bars: str = "blank") -> bool:
    """Return whether a shell would pass a text on without evaluating a part of it."""
    try:
        split_words(text, bars=bars)
    except ShellTextError:
        return False
    return True


class _Splitter:
    """Walks over a command once and collects its words."""

    def __init__(self, text: str, *, pipes: bool) -> None:
        self._text = text
        self._operators = _OPERATORS | {"|": "pipes"} if pipes else _OPERATORS
        self._position = 0
        self._words: list[Word] = []
        self._word: list[str] | None = None
        self._pattern = False

    def words(self) -> list[Word]:
        while self._position < len(self._text):
            self._step(self._text[self._position])
        self._finish()
        return self._words

    def _finish(self) -> None:
        if self._word is not None:
            self._words.append(Word("".join(self._word), self._pattern))
            self._word = None
            self._pattern = False

    def _add(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _step(self, character: str) -> None:
        if character in _BLANKS:
            self._finish()
            self._position += 1
        elif character == "'":
            self._single_quoted()
        elif character == '"':
            self._double_quoted()
        elif character == "\\":
            self._escaped()
        else:
            self._bare(character)

    def _bare(self, character: str) -> None:
        if character in "$`":
            raise ShellTextError(f"{_excerpt(self._text, self._position)} would be expanded")
        if character in self._operators:
            meaning = self._operators[character]
            raise ShellTextError(
                f"{character!r} in {_excerpt(self._text, self._position)} {meaning}"
            )
        if self._word is None and character in "#~":
            meaning = "starts a comment" if character == "#" else "names a home folder"
            raise ShellTextError(f"{_excerpt(self._text, self._position)} {meaning}")
        if character == "~" and self._assigns():
            raise ShellTextError(f"{_excerpt(self._text, self._position)} names a home folder")
        if character == "{" and (found := _BRACES.match(self._text, self._position)):
            inside = found.group()
            if "," in inside or ".." in inside:
                raise ShellTextError(f"{_short(inside)} would be expanded")
        self._add(character)
        self._pattern = self._pattern or character in "*?"
        self._position += 1

    def _assigns(self) -> bool:
        """Return whether the word so far is an assignment that goes on with a folder."""
        return bool(_ASSIGNED.fullmatch("".join(self._word or ())))

    def _single_quoted(self) -> None:
        end = self._text.find("'", self._position + 1)
        if end < 0:
            raise UnfinishedTextError(
                f"{_excerpt(self._text, self._position)} has no closing quote"
            )
        self._add(self._text[self._position + 1 : end])
        self._position = end + 1

    def _double_quoted(self) -> None:
        inside: list[str] = []
        position = self._position + 1
        while position < len(self._text) and self._text[position] != '"':
            character = self._text[position]
            if character in "$`":
                raise ShellTextError(f"{_excerpt(self._text, position)} would be expanded")
            if character == "\\" and self._text[position + 1 : position + 2] in {
                "\\",
                '"',
                "$",
                "`",
            }:
                position += 1
                character = self._text[position]
            inside.append(character)
            position += 1
        if position >= len(self._text):
            raise UnfinishedTextError(
                f"{_excerpt(self._text, self._position)} has no closing quote"
            )
        self._add("".join(inside))
        self._position = position + 1

    def _escaped(self) -> None:
        if self._position + 1 >= len(self._text):
            raise UnfinishedTextError("a backslash ends it")
        self._add(self._text[self._position + 1])
        self._position += 2


def _excerpt(text: str, position: int) -> str:
    return _short(text[position:].split(None, 1)[0])


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "…")


class BracketError(ValueError):
    """A ``[ … ]`` that bash cannot read: it prints an error and takes it for false."""


def bracket_test(left: str, operator: str, right: str) -> bool:
    """Return what ``[ $left = $right ]`` (or ``!=``) says, both sides unquoted, ``IFS='|'``.

    Raises:
        BracketError: an operand is empty or falls into several words, so bash prints an error.
    """
    words = [*split_list(left), operator, *split_list(right)]
    if len(words) == 3 and words[1] == operator:
        return (words[0] == words[2]) is (operator == "=")
    if len(words) == 1:
        return True
    raise BracketError(f"[ {' '.join(words)} ]")


def pattern_test(left: str, pattern: str) -> bool:
    """Return what ``[[ $left = $pattern ]]`` says: the right side is a pattern, nothing splits."""
    return fnmatchcase(left, pattern)
