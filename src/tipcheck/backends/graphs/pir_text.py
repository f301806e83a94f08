"""Reads the programs that ``Config.switch_ir_debug`` makes Paddle print, pass by pass.

The optimised program cannot be read back from a file, and applying the passes once more gives a
second program that only should be the same. What a predictor prints while it is built is the very
program that it then runs.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HEAD = re.compile(r"IRPrinting on \S+ (before|after) (\S+) pass")
_OP = re.compile(r'^\s*\(([^()]*)\) = "([^"]*)" \(')
_LOWERED = re.compile(r'[{,]op_name:"([^"]+)"')
_TYPE = re.compile(r"^(?:\w+_)?tensor<(?:([-0-9x]+)x)?(\w+)>$")
_WHOLE = re.compile(r"^-?\d+$")
_REAL = re.compile(r"^-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)$")
_DTYPES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "b": "bool",
    "i1": "bool",
    "bool": "bool",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "i": "int32",
    "c64": "complex64",
    "c128": "complex128",
}
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


@dataclass(frozen=True, slots=True)
class PrintedType:
    """The type of one value; a vector has the types of its elements."""

    dtype: str
    shape: tuple[int, ...]
    elements: tuple[PrintedType, ...] | None = None


@dataclass(frozen=True, slots=True)
class PrintedOp:
    """One line of a printed program. Operands that are not given are -1."""

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    attributes: dict[str, Any]
    types: tuple[PrintedType, ...]

    @property
    def type(self) -> str:
        """The op's own type; lowered programs call the op after its kernel."""
        return str(self.attributes.get("op_name", self.name))


@dataclass(slots=True)
class PrintedProgram:
    """One printed program: which pass it stands before or after, and its lines.

    Ops inside of control flow are left out: they run in an interpreter of their own.
    """

    when: str
    pass_name: str
    lines: list[str] = field(default_factory=list)

    def ops(self) -> list[PrintedOp]:
        """Read the lines. Done on request: a hundred programs are printed, a handful is needed."""
        return [_op(line) for line in self.lines]

    def types(self) -> Counter[str]:
        """Count the op types, without reading the rest."""
        return Counter(_type_of(line) for line in self.lines)


def read_programs(lines: Iterable[str]) -> Iterator[PrintedProgram]:
    """Yield every program of a debug print, one at a time."""
    program: PrintedProgram | None = None
    depth = 0
    for line in lines:
        head = _HEAD.search(line)
        if head:
            if program is not None:
                yield program
            program, depth = PrintedProgram(head[1], head[2]), 0
        elif program is not None:
            text = line.rstrip("\n")
            if depth == 1 and _OP.match(text):
                program.lines.append(text)
            # A region opens at the end of a line and closes on a line of its own.
            if text.rstrip().endswith("{"):
                depth += 1
            if text.lstrip().startswith("}"):
                depth -= 1
    if program is not None:
        yield program


def _type_of(line: str) -> str:
    lowered = _LOWERED.search(line)
    if lowered:
        return lowered[1]
    head = _OP.match(line)
    return head[2] if head else ""


def _op(line: str) -> PrintedOp:
    head = _OP.match(line)
    assert head is not None  # noqa: S101 - the caller has looked
    at = head.end() - 1
    operands, at = _group(line, at)
    at = line.index("{", at)
    attributes, at = _group(line, at)
    arrow = line.find("->", line.find(") ->", at))
    types = line[arrow + 2 :].strip().removesuffix("{").strip() if arrow >= 0 else ""
    return PrintedOp(
        name=head[2],
        operands=tuple(_ids(operands)),
        results=tuple(_ids(head[1])),
        attributes=_attributes(attributes),
        types=tuple(_type(item) for item in _split(types)),
    )


def _group(text: str, at: int) -> tuple[str, int]:
    """Return what stands between the bracket at ``at`` and its partner, and where that ends."""
    closing = [_CLOSING[text[at]]]
    quoted = False
    for place in range(at + 1, len(text)):
        letter = text[place]
        if letter == '"' and text[place - 1] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif letter == closing[-1]:
            closing.pop()
            if not closing:
                return text[at + 1 : place], place + 1
        elif letter in _CLOSING and not (letter == "<" and "<<" in text[place : place + 2]):
            closing.append(_CLOSING[letter])
    return text[at + 1 :], len(text)


def _split(text: str) -> Iterator[str]:
    """Split at the commas that stand outside of any bracket or quotation."""
    depth, quoted, start = 0, False, 0
    for place, letter in enumerate(text):
        if letter == '"' and text[place - 1 : place] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "([{<":
            depth += 1
        elif letter in ")]}>" and text[place - 1 : place] != "-":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[start:place].strip()
            start = place + 1
    rest = text[start:].strip()
    if rest:
        yield rest


def _ids(text: str) -> Iterator[int]:
    for item in text.split(","):
        name = item.strip()
        if name.startswith("%"):
            yield int(name[1:])
        elif name:
            yield -1


def _attributes(text: str) -> dict[str, Any]:
    found = {}
    for item in _split(text):
        name, colon, value = item.partition(":")
        if colon:
            found[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:  # noqa: ANN401 - any JSON value
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [_value(item) for item in _split(text[1:-1])]
    if text in {"true", "false"}:
        return text == "true"
    if _WHOLE.match(text):
        return int(text)
    return float(text) if _REAL.match(text) else text


def _type(text: str) -> PrintedType:
    if text.startswith("vec["):
        return PrintedType("", (), tuple(_type(item) for item in _split(text[4:-1])))
    found = _TYPE.match(text)
    if not found:
        return PrintedType("", ())
    lengths = tuple(int(length) for length in found[1].split("x")) if found[1] else ()
    return PrintedType(_DTYPES.get(found[2], found[2]), lengths)
