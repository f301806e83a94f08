"""The JSON form of every contract: one way out, one way back in, one schema generator.

Rooms define frozen dataclasses and know nothing of JSON. A dataclass that may stand alone in a
file carries ``schema = "tipcheck.NAME/VERSION"``; the JSON then starts with that string and with
the version of tipcheck that wrote it, and reading a file of another kind or version is an error
that says so. JSON has no NaN or infinity: they are written as the strings ``"nan"``, ``"inf"`` and
``"-inf"`` and read back as numbers.
"""

from __future__ import annotations

import dataclasses  # noqa: TC003 - the protocol below is read at run time
import json
import math
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from tipcheck import __version__
from tipcheck.errors import UsageError


class Contract(Protocol):
    """A dataclass that can stand alone in a JSON file."""

    schema: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


C = TypeVar("C", bound=Contract)

_NUMBER_OR_WORD = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}


def to_builtins(contract: Contract) -> dict[str, Any]:
    """Return a contract as plain dicts, lists and numbers, ready for ``json.dumps``."""
    body = _name_nonfinite(msgspec.to_builtins(contract))
    return {"schema": contract.schema, "tipcheck": __version__, **body}


def dumps(contract: Contract, *, indent: int | None = 2) -> str:
    """Return a contract as JSON text, its schema name first."""
    return json.dumps(to_builtins(contract), indent=indent, ensure_ascii=False, allow_nan=False)


def loads(text: str | bytes, kind: type[C], *, source: str = "JSON text") -> C:
    """Read back what ``dumps`` wrote.

    Args:
        text: the JSON.
        kind: the contract expected in it.
        source: what to call the text in an error, such as its file name.

    Raises:
        UsageError: the text is no JSON, of another kind or version, or does not fit the contract.
    """
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise UsageError(f"not readable as JSON ({error})", where=source) from None
    found = raw.pop("schema", None) if isinstance(raw, dict) else None
    if isinstance(raw, dict):
        raw.pop("tipcheck", None)
    if found != kind.schema:
        raise UsageError(
            f"expected schema {kind.schema!r}, found {found!r}",
            where=source,
            hint="write the file again with this version of tipcheck",
        )
    try:
        # Not strict only so that "nan" and "inf" come back as numbers.
        return msgspec.convert(raw, type=kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"does not fit {kind.schema}: {error}", where=source) from None


def json_schema(kind: type[Contract]) -> dict[str, Any]:
    """Return the JSON Schema of a contract, as ``dumps`` writes it."""
    schema: dict[str, Any] = _widen_numbers(msgspec.json.schema(kind))
    body = schema["$defs"][kind.__name__]
    heading = {"schema": {"const": kind.schema}, "tipcheck": {"type": "string"}}
    body["properties"] = heading | body["properties"]
    body["required"] = [*heading, *body.get("required", [])]
    return schema


def _name_nonfinite(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {key: _name_nonfinite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_name_nonfinite(item) for item in value]
    return value


def _widen_numbers(schema: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(schema, list):
        return [_widen_numbers(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "number":
        return {key: item for key, item in schema.items() if key != "type"} | _NUMBER_OR_WORD
    return {key: _widen_numbers(item) for key, item in schema.items()}
