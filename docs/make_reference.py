"""Writes the reference pages from the code: every command, and every contract with a JSON form.

Run ``python docs/make_reference.py`` after changing an argument or a contract, and commit what it
wrote; ``tests/test_reference_pages.py`` fails while the pages say something else than the code.
argparse's own help text is not used: its wording and its line breaks depend on the version of
Python and on the width of the terminal.
"""

from __future__ import annotations

import argparse
import ast
import html
import importlib
import inspect
import json
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import tipcheck
from tipcheck import wire
from tipcheck.cli.commands import COMMANDS, Command
from tipcheck.cli.main import help_text, parser_for

_ROOMS = (
    "config_plans",
    "step_runner",
    "backends",
    "compare",
    "stage_ladder",
    "blame",
    "report",
    "quant",
)
# What an argument accepts, where that is a list that depends on the version of a library.
_CHOICES = {("completion", "shell"): "`bash`, `zsh` and what else the installed shtab knows"}
_WRITTEN = "<!-- Written by docs/make_reference.py: change the code, then run that script. -->\n"

_COMMANDS_HEAD = """\
# Commands

What every command takes. `tipcheck COMMAND --help` prints the same for the version you have.

```text
{help}
```
"""

_SCHEMAS_HEAD = """\
# JSON schemas

Every result that leaves tipcheck as JSON is one of the contracts below. What they have in common:

- **The first two keys** are `schema`, which says what this is, and `tipcheck`, the version of
  tipcheck that wrote it.
- **The number after the slash** in the schema name is the version of the form. It is raised when
  a reader of the old form would misread or miss something: a field that is renamed or removed, or
  that changes its meaning. A new field that may be left out does not raise it. tipcheck refuses a
  file of another version instead of guessing.
- **NaN and infinity** do not exist in JSON. They are written as the texts `"nan"`, `"inf"` and
  `"-inf"`, wherever the tables say *number*. Python's `float("inf")` reads all three.
- **`null`** means: not defined for this tensor, or not measured. It never means zero. Where a
  description below says None, the JSON has `null`.
- **Every field is written**, also one with its default value. A field that is not *always there*
  may be missing in a file that another program wrote; tipcheck then reads it as the default.
- **An unknown field** is ignored by tipcheck; a reader of yours should do the same.

Some contracts are agreed before any command writes them: `tipcheck.bundle` and `tipcheck.culprit`.
`tipcheck.step-result`, `tipcheck.stage-outputs` and `tipcheck.trace` only pass from room to room
inside tipcheck.

| schema | what it holds |
|---|---|
{rows}

```{{toctree}}
:hidden:

{toctree}
```
"""


def pages() -> dict[str, str]:
    """Return the text of every reference page by its path below ``docs/reference``."""
    kinds = contracts()
    written = {f"schemas/{_slug(kind)}.md": _schema_page(kind) for kind in kinds}
    return {"commands.md": _commands_page(), "schemas.md": _schemas_page(kinds), **written}


def contracts() -> list[type[wire.Contract]]:
    """Return every class of the package with a schema name, in the order of the corridors."""
    source = Path(tipcheck.__file__).parent
    found: list[tuple[int, str, type[wire.Contract]]] = []
    for path in source.rglob("*.py"):
        place = path.relative_to(source).with_suffix("").parts
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and _names_schema(node):
                module = importlib.import_module(".".join(("tipcheck", *place)))
                order = _ROOMS.index(place[0]) if place[0] in _ROOMS else len(_ROOMS)
                found.append((order, ".".join(place), getattr(module, node.name)))
    return [kind for *_, kind in sorted(found, key=lambda item: item[:2])]


def _names_schema(node: ast.ClassDef) -> bool:
    """Whether a class says ``schema: ClassVar[str] = "tipcheck.NAME/VERSION"``."""
    return any(
        isinstance(line, ast.AnnAssign)
        and isinstance(line.target, ast.Name)
        and line.target.id == "schema"
        and isinstance(line.value, ast.Constant)
        for line in node.body
    )


# --- commands -----------------------------------------------------------------------------------


def _commands_page() -> str:
    parts = [_WRITTEN, _COMMANDS_HEAD.format(help=help_text())]
    parts += [_command(command) for command in COMMANDS]
    return "\n".join(parts)


def _command(command: Command) -> str:
    module = importlib.import_module(command.module)
    parser = parser_for(command, module)
    actions = [
        action
        for action in parser._actions  # noqa: SLF001 - argparse has no public list of them
        if not isinstance(action, argparse._HelpAction)  # noqa: SLF001
    ]
    first, *others = inspect.cleandoc(module.__doc__ or command.summary).split("\n\n")
    lines = [f"## tipcheck {command.name}", "", _prose(first), ""]
    lines += ["```text", " ".join([parser.prog, *map(_usage, actions)]), "```", ""]
    if others:
        lines += ["```text", "\n\n".join(others), "```", ""]
    lines += ["| argument | what it does |", "|---|---|"]
    for action in actions:
        choices = _CHOICES.get((command.name, action.dest), "")
        lines.append(f"| {_spelling(action)} | {_meaning(action, choices)} |")
    return "\n".join([*lines, ""])


def _usage(action: argparse.Action) -> str:
    if action.option_strings:
        name = max(action.option_strings, key=len)
        value = _value(action)
        text = f"{name} {value}" if value else name
        return text if action.required else f"[{text}]"
    return f"[{_value(action)}]" if action.nargs in ("?", "*") else _value(action)


def _spelling(action: argparse.Action) -> str:
    value = _value(action)
    names = action.option_strings or [value]
    told = value if action.option_strings else ""
    return ", ".join(f"`{name} {told}`" if told else f"`{name}`" for name in names)


def _value(action: argparse.Action) -> str:
    """Return what stands for the value of an argument; empty for a switch."""
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest.upper()


def _meaning(action: argparse.Action, choices: str) -> str:
    text = (action.help or "") % {"default": action.default, "prog": "tipcheck"}
    if action.choices is not None and not choices:
        choices = ", ".join(f"`{choice}`" for choice in action.choices)
    return _cell("; ".join(filter(None, (text, choices and f"one of {choices}"))))


# --- schemas ------------------------------------------------------------------------------------


def _schemas_page(kinds: list[type[wire.Contract]]) -> str:
    rows = [
        f"| [`{kind.schema}`](schemas/{_slug(kind)}.md) | {_cell(_about(kind)[0])} |"
        for kind in kinds
    ]
    entries = [f"schemas/{_slug(kind)}" for kind in kinds]
    return "\n".join(
        [_WRITTEN, _SCHEMAS_HEAD.format(rows="\n".join(rows), toctree="\n".join(entries))]
    )


def _schema_page(kind: type[wire.Contract]) -> str:
    schema = wire.json_schema(kind)
    bodies = schema["$defs"]
    for name, body in bodies.items():
        if "description" in body:
            body["description"] = inspect.cleandoc(body["description"])
        if "enum" in body:  # msgspec sorts the values; their order in the code means something
            body["enum"] = [member.value for member in _enum(name)]
    inner = [name for name in bodies if name != kind.__name__]
    room = kind.__module__.removeprefix("tipcheck.").split(".")[0]
    parts = [
        _WRITTEN,
        f"# {kind.__name__}",
        "",
        f"`{kind.schema}`, from the room `{room}`. {_prose(_about(kind)[0])}",
        "",
        *_fields(bodies[kind.__name__]),
    ]
    for name in inner:
        parts += ["", f"## {name}", "", *_type(bodies[name])]
    parts += ["", "## JSON Schema", "", "```json", json.dumps(schema, indent=2), "```", ""]
    return "\n".join(parts)


def _enum(name: str) -> type[Enum]:
    """Return the enumeration of that name; the contracts that use it have imported it."""
    return next(
        kind
        for module, content in sorted(sys.modules.items())
        if module.startswith("tipcheck.")
        and isinstance(kind := getattr(content, name, None), type)
        and issubclass(kind, Enum)
    )


def _type(body: dict[str, Any]) -> list[str]:
    about, _ = _split(body.get("description", ""))
    if "enum" in body:
        values = ", ".join(f"`{json.dumps(value)}`" for value in body["enum"])
        return [f"{_prose(about)} One of {values}."]
    return [_prose(about), "", *_fields(body)]


def _fields(body: dict[str, Any]) -> list[str]:
    _, told = _split(body.get("description", ""))
    told |= {"schema": "what this is", "tipcheck": "version of tipcheck that wrote it"}
    required = body.get("required", [])
    lines = ["| field | type | always there | what it is |", "|---|---|---|---|"]
    for name, form in body["properties"].items():
        always = "yes" if name in required else f"no: `{json.dumps(form.get('default'))}`"
        lines.append(f"| `{name}` | {_form(form)} | {always} | {_cell(told.get(name, ''))} |")
    return lines


def _form(form: dict[str, Any]) -> str:
    """Return a JSON type in words."""
    if "$ref" in form:
        name = form["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in form:
        if any(option.get("enum") == ["nan", "inf", "-inf"] for option in form["anyOf"]):
            return "number"
        return " or ".join(_form(option) for option in form["anyOf"])
    if "const" in form or "enum" in form:
        values = form.get("enum", [form.get("const")])
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    inner = form.get("items", form.get("additionalProperties"))
    kind = {"array": "list"}.get(form.get("type", ""), form.get("type", "anything"))
    return f"{kind} of {_form(inner)}" if isinstance(inner, dict) else str(kind)


def _about(kind: type) -> tuple[str, dict[str, str]]:
    return _split(inspect.cleandoc(kind.__doc__ or ""))


def _split(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the text of a Google style docstring, and what it says of each attribute."""
    text, _, listed = inspect.cleandoc(docstring).partition("Attributes:\n")
    told: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(listed).splitlines():
        if not line.startswith(" ") and ":" in line:
            name, _, rest = line.partition(":")
            told[name] = rest.strip()
        elif name:
            told[name] += f" {line.strip()}"
    return " ".join(text.split()), {key: value.rstrip(".") for key, value in told.items()}


def _slug(kind: type[wire.Contract]) -> str:
    return kind.schema.removeprefix("tipcheck.").partition("/")[0]


def _prose(text: str) -> str:
    """Return text of a docstring as Markdown: code in single backticks, nothing taken for HTML."""
    text = text.replace("``", "`")
    plain = text.split("`")
    plain[::2] = [html.escape(part, quote=False).replace("*", "\\*") for part in plain[::2]]
    return "`".join(plain)


def _cell(text: str) -> str:
    return _prose(" ".join(text.split())).replace("|", "\\|")


def main() -> None:
    """Write the pages, and say which ones changed."""
    folder = Path(__file__).parent / "reference"
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path}\n")


if __name__ == "__main__":
    main()
