"""The little language of a profile's templates and conditions, compiled once per profile.

A template is text with ``{name}`` for the value of a variable and ``[name]`` for an option: the key
of line ``name`` and its value, or nothing where either is ``null``. ``[name=…]`` gives the option
another value, ``['key'=…]`` a fixed key. A condition compares two templates; see ``Condition``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tipcheck.config_plans.text import option
from tipcheck.config_plans.words import BracketError, bracket_test, pattern_test

_TOKEN = re.compile(r"\{([\w.]+)\}|\[(?:'([^']+)'|([a-z]\w*))(?:=([^\[\]]*))?\]")
_COMPARISON = re.compile(r"(.*?) (=|!=|==|!==|has|in) (.*)", re.DOTALL)


class TemplateError(ValueError):
    """A template or condition of a profile that cannot be read."""


@dataclass(frozen=True, slots=True)
class Name:
    """The value of a variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Option:
    """``key=value``: the key of a line or a fixed one, and what to give it."""

    key: Template
    value: Template


@dataclass(frozen=True, slots=True)
class Template:
    """Text with gaps; ``names`` are the variables that fill them."""

    parts: tuple[str | Name | Option, ...]
    names: frozenset[str]
    only: str | None = None
    """The variable, if the template is nothing but its value."""

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with its gaps filled; a variable that is not set is empty."""
        if self.only is not None:
            return values.get(self.only, "")
        return "".join(
            [
                part
                if isinstance(part, str)
                else values.get(part.name, "")
                if isinstance(part, Name)
                else option(part.key.fill(values), part.value.fill(values))
                for part in self.parts
            ]
        )


def compile_template(text: str) -> Template:
    """Compile a template."""
    parts: list[str | Name | Option] = []
    names: set[str] = set()
    position = 0
    for match in _TOKEN.finditer(text):
        if match.start() > position:
            parts.append(text[position : match.start()])
        position = match.end()
        variable, fixed_key, line, value_text = match.groups()
        if variable is not None:
            parts.append(Name(variable))
            names.add(variable)
            continue
        value = compile_template(f"{{{line}}}" if value_text is None else value_text)
        key = compile_template(f"{{{line}.key}}" if fixed_key is None else fixed_key)
        parts.append(Option(key, value))
        names |= value.names | key.names
    if position < len(text):
        parts.append(text[position:])
    only = parts[0].name if len(parts) == 1 and isinstance(parts[0], Name) else None
    return Template(tuple(parts), frozenset(names), only)


class Condition(Protocol):
    """Something that holds or does not, given the variables.

    ``a = b`` and ``a != b`` are single-bracket tests: both sides split at ``|``, and bash cannot
    read one with an empty side. A side in single quotes is taken whole. ``a == b`` and ``a !== b``
    are double-bracket tests, ``has`` looks for a part, ``in`` for one of several words. A list
    holds when all of it holds, ``{"any": […]}`` when one does, ``{"not": …}`` when it fails.
    """

    def holds(self, values: Mapping[str, str], *, strict: bool) -> bool:
        """Return whether it holds."""
        ...


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two templates and what has to be true of them."""

    left: Template
    operator: str
    right: Template
    whole: bool

    def holds(self, values: Mapping[str, str], *, strict: bool) -> bool:
        """Return whether it holds.

        A single-bracket test that bash cannot read fails; if strict, an empty side raises and
        bars are characters like others.
        """
        left, right = self.left.fill(values), self.right.fill(values)
        if self.operator in {"=", "!="}:
            if self.whole or (strict and left and right):
                return (left == right) is (self.operator == "=")
            try:
                return bracket_test(left, self.operator, right)
            except BracketError:
                if strict:
                    raise
                return False
        if self.operator in {"==", "!=="}:
            return pattern_test(left, right) is (self.operator == "==")
        if self.operator == "in":
            return left in right.split()
        return right in left


@dataclass(frozen=True, slots=True)
class Every:
    """Holds when all of them hold."""

    conditions: tuple[Condition, ...]

    def holds(self, values: Mapping[str, str], *, strict: bool) -> bool:
        """Return whether all hold."""
        return all(condition.holds(values, strict=strict) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Either:
    """Holds when one of them holds."""

    conditions: tuple[Condition, ...]

    def holds(self, values: Mapping[str, str], *, strict: bool) -> bool:
        """Return whether one holds."""
        return any(condition.holds(values, strict=strict) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Negation:
    """Holds when the other does not."""

    condition: Condition

    def holds(self, values: Mapping[str, str], *, strict: bool) -> bool:
        """Return whether the other fails."""
        return not self.condition.holds(values, strict=strict)


def compile_condition(source: str | Sequence[Any] | Mapping[str, Any]) -> Condition:
    """Compile a condition from its form in a profile.

    Raises:
        TemplateError: it has none of the forms that ``Condition`` lists.
    """
    if isinstance(source, str):
        return _comparison(source)
    if isinstance(source, Mapping):
        if set(source) == {"any"}:
            return Either(tuple(compile_condition(item) for item in source["any"]))
        if set(source) == {"not"}:
            return Negation(compile_condition(source["not"]))
        raise TemplateError(f"not a condition: {source!r}")
    return Every(tuple(compile_condition(item) for item in source))


def _comparison(source: str) -> Comparison:
    match = _COMPARISON.fullmatch(source)
    if not match:
        raise TemplateError(f"not a condition: {source!r}")
    left, operator, right = match.groups()
    whole = left.startswith("'") or right.startswith("'")
    return Comparison(
        compile_template(left.strip("'")), operator, compile_template(right.strip("'")), whole
    )
