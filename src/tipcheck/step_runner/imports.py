"""Which of a repo's own Python files a script may import, found without running it.

The answer errs on the side of too many: a file too many means that a step runs once more than
needed, a file too few that a stale result is believed. So a module is looked for in the script's
folder, in every folder between it and the repo's root, on ``PYTHONPATH``, and, when it is in none
of them, anywhere in the repo (model repos like to extend ``sys.path``). Code that imports by a name
computed at run time counts as importing every Python file of the repo.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DYNAMIC = {"import_module", "__import__", "exec", "execfile", "run_path", "run_module"}
_DYNAMIC_NAMES = {"spec_from_file_location", "iter_modules", "walk_packages", "SourceFileLoader"}
_FOREIGN = {"site-packages", "node_modules", "__pycache__"}


@dataclass(frozen=True, slots=True)
class _Module:
    """One import statement: a dotted name, and how many packages up it starts."""

    name: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class _Source:
    """What one Python file imports."""

    modules: tuple[_Module, ...]
    dynamic: bool


def read_imports(text: str) -> tuple[tuple[_Module, ...], bool]:
    """Return the modules a source text imports, and whether it imports by computed names.

    A text that is no Python of this version counts as importing anything.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's code
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (), True
    modules: list[_Module] = []
    dynamic = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [_Module(alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            modules.append(_Module(base, node.level))
            modules += [
                _Module(f"{base}.{alias.name}".lstrip("."), node.level)
                for alias in node.names
                if alias.name != "*"
            ]
        elif isinstance(node, ast.Call):
            word = _called(node.func)
            dynamic = dynamic or word in _DYNAMIC or word in _DYNAMIC_NAMES
    return tuple(dict.fromkeys(modules)), dynamic


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


class ImportWalker:
    """Follows imports through the files of one repo; reads each version of a file once."""

    def __init__(self, root: Path, ignore: Iterable[Path] = ()) -> None:
        """Walk a repo.

        Args:
            root: the repo's folder; files outside it are not followed.
            ignore: folders that hold output, not code.
        """
        self._root = root
        self._ignore = {str(folder) for folder in ignore}
        self._sources: dict[Path, tuple[tuple[int, int], _Source]] = {}
        self._index: dict[str, list[Path]] | None = None

    def reachable(
        self, scripts: Iterable[Path], *, code: str = "", search: Iterable[Path] = ()
    ) -> list[Path]:
        """Return the files that these scripts may import, themselves included, sorted.

        Args:
            scripts: files that an interpreter is started with.
            code: source text that is run besides (``python -c``).
            search: more folders to look in, such as those of ``PYTHONPATH``.
        """
        todo = [script for script in scripts if script.is_file()]
        near = [Path(os.path.normpath(folder)) for folder in search]
        folders = [*near, *(folder for script in todo for folder in self._folders_of(script))]
        if code:
            modules, dynamic = read_imports(code)
            if dynamic:
                return self._all_files()
            todo += [file for module in modules for file in self._find(module, None, folders)]
        seen: set[Path] = set()
        while todo:
            file = todo.pop()
            if file in seen:
                continue
            seen.add(file)
            source = self._read(file)
            if source.dynamic:
                return sorted(seen | set(self._all_files()))
            for module in source.modules:
                todo += self._find(module, file, folders)
        return sorted(seen)

    def find_module(self, name: str, folders: Iterable[Path]) -> list[Path]:
        """Return the files of the repo that ``python -m name`` may run."""
        found = self._find(_Module(name), None, [*folders, self._root])
        return [*found, *self._find(_Module(f"{name}.__main__"), None, [*folders, self._root])]

    def _folders_of(self, script: Path) -> Iterator[Path]:
        """Yield the script's folder and those above it, up to the repo's root."""
        yield script.parent
        for folder in script.parent.parents:
            if not folder.is_relative_to(self._root):
                break
            yield folder
        yield self._root

    def _read(self, file: Path) -> _Source:
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._sources.get(file)
            if known is None or known[0] != stamp:
                text = file.read_text(encoding="utf-8", errors="replace")
                known = (stamp, _Source(*read_imports(text)))
                self._sources[file] = known
        except OSError:
            return _Source((), dynamic=False)
        return known[1]

    def _find(self, module: _Module, importer: Path | None, folders: list[Path]) -> list[Path]:
        parts = module.name.split(".") if module.name else []
        if module.level and importer is not None:
            base = importer.parent
            for _ in range(module.level - 1):
                base = base.parent
            return list(self._files(base, parts)) or [base / "__init__.py"] * (
                (base / "__init__.py").is_file()
            )
        places = dict.fromkeys(folders if importer is None else [importer.parent, *folders])
        found = [file for folder in places for file in self._files(folder, parts)]
        if not found and parts:
            found = [
                file for base in self._named(parts[0]) for file in self._files(base.parent, parts)
            ]
        return found

    def _files(self, folder: Path, parts: list[str]) -> Iterator[Path]:
        """Yield the files that importing ``parts`` from ``folder`` runs."""
        if not folder.is_relative_to(self._root):
            return
        for part in parts:
            package = folder / part
            if package.is_dir():
                if (package / "__init__.py").is_file():
                    yield package / "__init__.py"
                folder = package
                continue
            file = folder / f"{part}.py"
            if file.is_file():
                yield file
            return

    def _named(self, name: str) -> list[Path]:
        return self._build_index().get(name, [])

    def _all_files(self) -> list[Path]:
        return [file for files in self._build_index().values() for file in files if file.suffix]

    def _build_index(self) -> dict[str, list[Path]]:
        """Return every module and package of the repo by its bare name."""
        if self._index is None:
            index: dict[str, list[Path]] = defaultdict(list)
            for folder, inner, files in os.walk(self._root):
                inner[:] = sorted(name for name in inner if self._is_code(folder, name))
                for name in inner:
                    index[name].append(Path(folder, name))
                for name in sorted(files):
                    if name.endswith(".py"):
                        index[name[:-3]].append(Path(folder, name))
            self._index = dict(index)
        return self._index

    def _is_code(self, folder: str, name: str) -> bool:
        path = os.path.join(folder, name)  # noqa: PTH118 - thousands of folders
        return (
            not name.startswith(".")
            and name not in _FOREIGN
            and path not in self._ignore
            and not os.path.exists(os.path.join(path, "pyvenv.cfg"))  # noqa: PTH110, PTH118
        )
