"""Compares what an inference printed with the results that a repo keeps as gold.

The files are those of the model suites' ``compare_results.py``: a line is ``NAME<tab>VALUE``, the
value JSON or whole numbers in rows of four; the prediction is the text after the last NAME in a
line of the log; the precision (fp32, fp16, int8) stands in the names of both files. Unlike that
script, which skips in silence, whatever is not compared is a failure: a name that the log does not
hold, a precision without gold, a gold file without a line, a value nobody can read.

A prediction is as good as gold when ``|gold - prediction| <= atol + rtol * |prediction|``, as in
numpy's ``assert_allclose``; shapes, texts and keys have to be the same.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FOLDER = Path("test_tipc") / "results"
"""Where the model suites keep their gold files."""

_PRECISIONS = ("fp32", "fp16", "int8")
_ROW = 4
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Gold:
    """The gold files of one plan, and how close a prediction has to be."""

    files: tuple[Path, ...]
    atol: float = 1e-3
    rtol: float = 1e-3


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of a comparison: why it failed, or an empty text; and what was compared."""

    failure: str
    compared: str


def gold_of(root: Path, model_name: str) -> tuple[Path, ...]:
    """Return the gold files that a repo keeps for a model: their names begin like its name does."""
    wanted = _plain(model_name)
    files = sorted((root / FOLDER).glob("*.txt")) if wanted else []
    return tuple(file for file in files if wanted in _plain(file.stem))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower())


def compare(gold: Gold, log: Path) -> Comparison:
    """Compare the log of an inference with the gold files of its precision."""
    precision = _precision(log)
    files = [file for file in gold.files if _precision(file) == precision]
    if not files:
        there = ", ".join(sorted({_precision(file) for file in gold.files}))
        return Comparison(f"no gold file for {precision} (there are: {there})", "")
    try:
        lines = log.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        return Comparison(f"its log cannot be read: {error.strerror}", "")
    total = 0
    for file in files:
        try:
            wanted = _read(file)
        except (OSError, ValueError) as error:
            return Comparison(f"gold file {file.name} cannot be used: {error}", "")
        for name, value in wanted.items():
            problem = _compare_one(name, value, lines, gold)
            if problem:
                return Comparison(f"not as {file.name} says: {problem}", "")
        total += len(wanted)
    names = ", ".join(file.name for file in files)
    return Comparison("", f"{total} result(s) as in {names}, within {gold.atol:g}/{gold.rtol:g}")


def _precision(file: Path) -> str:
    return next((word for word in _PRECISIONS if word in file.name), _PRECISIONS[0])


def _read(file: Path) -> Mapping[str, Any]:
    """Return a gold file's values by name.

    Raises:
        ValueError: a line has no name, or no value.
    """
    values: dict[str, Any] = {}
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        name, tab, text = line.partition("\t")
        name = name.rpartition("/")[2].strip()
        if not tab or not name:
            raise ValueError(f"line {number} is not NAME<tab>VALUE")
        if name in values:
            raise ValueError(f"line {number} gives {name} again")
        value = _parse(text)
        if value is None:
            raise ValueError(f"line {number} is neither JSON nor whole numbers in rows of four")
        values[name] = value
    if not values:
        raise ValueError("it has no line")
    return values


def _parse(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return the value that a text stands for; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        numbers = [int(word) for word in text.split()]
    except ValueError:
        return None
    if not numbers or len(numbers) % _ROW:
        return None
    return [numbers[start : start + _ROW] for start in range(0, len(numbers), _ROW)]


def _compare_one(name: str, wanted: Any, lines: Sequence[str], gold: Gold) -> str:  # noqa: ANN401
    whole = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
    mentions = [line for line in lines if whole.search(line)]
    if not mentions:
        return f"the log does not hold {name}"
    for line in mentions:
        found = _parse(whole.split(line)[-1])
        if found is not None:
            break
    else:
        return f"the log holds {name} without a value"
    return next(_differences(name, wanted, found, gold), "")


def _differences(place: str, wanted: Any, found: Any, gold: Gold) -> Iterator[str]:  # noqa: ANN401
    """Yield what differs between two values, each with its place."""
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _differences(f"{place}[{index}]", one, other, gold)
    elif isinstance(wanted, dict) and isinstance(found, dict) and wanted.keys() == found.keys():
        for key, one in wanted.items():
            yield from _differences(f"{place}[{key!r}]", one, found[key], gold)
    elif isinstance(wanted, list) and isinstance(found, list):
        yield f"{place} has {len(found)} entries, gold {len(wanted)}"
    elif _is_number(wanted) and _is_number(found):
        if not _close(wanted, found, gold):
            yield f"{place} is {found!r}, gold {wanted!r}"
    elif wanted != found:
        yield f"{place} is {_short(found)}, gold {_short(wanted)}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _close(wanted: float, found: float, gold: Gold) -> bool:
    if math.isnan(wanted) or math.isnan(found):
        return math.isnan(wanted) and math.isnan(found)
    if math.isinf(wanted) or math.isinf(found):
        return wanted == found
    return abs(wanted - found) <= gold.atol + gold.rtol * abs(found)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
