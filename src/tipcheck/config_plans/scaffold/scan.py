"""What a Python script says about its own command line, read from its text and never run.

``tipcheck init`` writes the names of a script's options into a config. They are taken from the
calls that declare them, so a config never asks for an option that the script does not have.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from tipcheck.errors import UsageError

_DECLARING = frozenset({"add_argument", "add_arg", "add_arguments"})
_CLICK = frozenset({"option", "Option"})
"""Calls of click and typer; they declare an option only if one of their texts looks like one."""
_WITHOUT_VALUE = frozenset({
    "store_true", "store_false", "store_const", "append_const", "count", "help", "version",
    "BooleanOptionalAction",
})  # fmt: skip
_LARGEST = 1024 * 1024
_MOST_FILES = 20

Constant = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a script.

    Attributes:
        flag: how it is written, the longest form if there are several.
        takes_value: whether ``flag=value`` is how to give it.
        default: its default where that is a constant, else None.
        choices: the values it is limited to, none if it is not limited.
        also: its other long forms.
        required: whether the script does not start without it.
    """

    flag: str
    takes_value: bool = True
    default: Constant = None
    choices: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    required: bool = False

    @property
    def plain(self) -> str:
        """The name without dashes, in small letters, its parts joined by ``-``."""
        return _plain(self.flag)

    @property
    def plains(self) -> tuple[str, ...]:
        """The plain names of all its forms."""
        return (self.plain, *map(_plain, self.also))

    @property
    def names_devices(self) -> bool:
        """Whether a device option takes ``gpu`` or ``cpu``, not ``True`` or ``False``."""
        return (
            bool({"gpu", "cpu"} & set(self.choices))
            or self.default in ("gpu", "cpu")
            or self.plain in ("device", "devices", "place")
        )

    def on(self, *, gpu: bool) -> str:
        """Return the value of a device option."""
        if self.names_devices:
            return "gpu" if gpu else "cpu"
        return str(gpu)

    @property
    def prefers_gpu(self) -> bool:
        """Whether a device option is seen to choose the GPU where it is not given."""
        return self.takes_value and self.default in ("gpu", "gpu:0", "True", True)


@dataclass(frozen=True, slots=True)
class Script:
    """What is known about a script.

    Attributes:
        path: relative to the repo, with slashes.
        options: in the order of their declaration.
        weights: the names of ``.pdparams`` files that its text holds.
    """

    path: str
    options: tuple[Option, ...] = ()
    weights: tuple[str, ...] = ()

    def option(self, names: tuple[str, ...]) -> Option | None:
        """Return the option that goes by one of some plain names, the first name first."""
        known = {name: option for option in reversed(self.options) for name in option.plains}
        return next((known[name] for name in names if name in known), None)


def scan(root: Path, path: str) -> Script:
    """Read a script of a repo.

    Options come from the script itself; if it declares none, from the modules of the repo that it
    imports, because many repos keep their parser in a module of its own.

    Raises:
        UsageError: there is no such file, or it is not readable as Python.
    """
    first = _parse(root, path)
    options = tuple(_options(first))
    weights = list(_weights(first))
    seen = {path}
    waiting = list(_imports(first, root, path))
    while waiting and len(seen) < _MOST_FILES:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        try:
            tree = _parse(root, name)
        except UsageError:
            continue  # what is wrong there shows when the script runs
        if not options:
            options = tuple(_options(tree))
        weights += _weights(tree)
        waiting += _imports(tree, root, name)
    return Script(path, options, tuple(dict.fromkeys(weights)))


def _parse(root: Path, path: str) -> ast.Module:
    file = root / path
    try:
        if not file.is_file():
            raise UsageError("no such script", where=path, hint="give its path in the repo")
        if file.stat().st_size > _LARGEST:
            raise UsageError("is too large for a script", where=path)
        return ast.parse(file.read_bytes(), filename=path)
    except SyntaxError as error:
        where = path if error.lineno is None else f"{path}:{error.lineno}"
        raise UsageError(f"is not readable as Python ({error.msg})", where=where) from None
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"is not readable as Python ({error})", where=path) from None


def _options(tree: ast.Module) -> list[Option]:
    aliases = _aliases(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _name(node.func)
            option = _declared(node, aliases.get(name, name))
            if option is not None:
                found.append(option)
    return found


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Return short names of declaring functions, as in ``add = parser.add_argument``."""
    return {
        target.id: _name(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _name(node.value) in _DECLARING
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _declared(call: ast.Call, function: str) -> Option | None:
    """Return the option that a call declares, or None for a positional argument or another call."""
    texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
    words = [text for text in texts if isinstance(text, str)]
    flags = [part for word in words if word.startswith("-") for part in word.split("/")]
    flags = [flag for flag in flags if flag.strip("-")]
    absl = function.startswith("DEFINE_")
    shorthand = absl or function in _DECLARING - {"add_argument"}  # ('name', type, default, 'help')
    if not flags and shorthand and words:
        flags = ["--" + words[0]]
    if not flags or not (shorthand or function in _DECLARING or function in _CLICK):
        return None
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    default: Constant = _constant(given.get("default"))
    place = {True: 1, False: 2}[absl]
    if shorthand and "default" not in given and len(call.args) > place:
        default = _constant(call.args[place])
    is_switch = _constant(given.get("is_flag")) is True or "/" in "".join(words[:1])
    flags = flags[:1] if is_switch else flags
    flag = max(flags, key=len)
    return Option(
        flag=flag,
        takes_value=not is_switch and _action(given.get("action")) not in _WITHOUT_VALUE,
        default=default,
        choices=_choices(given.get("choices") or _first_of(given.get("type"))),
        also=tuple(other for other in flags if other.startswith("--") and other != flag),
        required=_constant(given.get("required")) is True,
    )


def _first_of(node: ast.expr | None) -> ast.expr | None:
    """Return the choices in ``type=click.Choice([…])``."""
    if isinstance(node, ast.Call) and _name(node.func) == "Choice" and node.args:
        return node.args[0]
    return None


def _plain(flag: str) -> str:
    return flag.lstrip("-").lower().replace("_", "-")


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _action(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "" if node is None else _name(node)


def _constant(node: ast.expr | None) -> Constant:
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool)):
        return node.value
    return None


def _choices(node: ast.expr | None) -> tuple[str, ...]:
    if not isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return ()
    return tuple(str(item.value) for item in node.elts if isinstance(item, ast.Constant))


def _weights(tree: ast.Module) -> list[str]:
    """Return the names of weight files, taken from plain texts only."""
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    names = [
        node.value.rsplit("/", 1)[-1]
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.endswith(".pdparams")
        and id(node) not in inside
    ]
    return [
        name
        for name in names
        if name != ".pdparams" and not set(name) & set("{}%* :|") and name.isprintable()
    ]


def _imports(tree: ast.Module, root: Path, path: str) -> list[str]:
    """Return the files of the repo that a module imports."""
    folder = Path(path).parent
    candidates = [
        base / file
        for module in _modules(tree, folder)
        for base in (folder, Path())
        for file in (f"{module}.py", f"{module}/__init__.py")
    ]
    return list(dict.fromkeys(file.as_posix() for file in candidates if (root / file).is_file()))


def _modules(tree: ast.Module, folder: Path) -> list[str]:
    """Return what is imported as paths without a suffix."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level > 1 and node.level - 1 <= len(folder.parts):
                above = folder.parts[: len(folder.parts) - node.level + 1]
                start = ".".join((*above, start)).rstrip(".")
            names += [start, *(f"{start}.{alias.name}".lstrip(".") for alias in node.names)]
    return [name.replace(".", "/") for name in names if name]
