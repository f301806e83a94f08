"""Turns the CONFIG arguments of ``tipcheck run`` into files, and finds the repo they belong to."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

IN_FOLDER = "*train*infer*.txt"
"""What a config of a whole chain is called in a folder full of others."""


def config_files(arguments: Sequence[Path]) -> list[Path]:
    """Return the files that are meant: a file is itself, a folder all chain configs below it.

    A pattern that the shell left alone, such as one in quotes, is replaced by what it matches.

    Raises:
        UsageError: a folder or a pattern holds no config.
    """
    files: list[Path] = []
    for argument in arguments:
        found = _files_of(argument)
        if not found:
            kind = "folder" if argument.is_dir() else "pattern"
            raise UsageError(
                f"no config in this {kind}",
                where=str(argument),
                hint=f"configs of a whole chain are called {IN_FOLDER}",
            )
        files += found
    return list(dict.fromkeys(files))


def _files_of(argument: Path) -> list[Path]:
    if argument.is_dir():
        return sorted(path for path in argument.rglob(IN_FOLDER) if path.is_file())
    if not argument.exists() and glob.has_magic(str(argument)):
        matches = (Path(name) for name in glob.glob(str(argument), recursive=True))  # noqa: PTH207 - absolute patterns too
        return sorted(path for path in matches if path.is_file())
    return [argument]


def repo_of(files: Sequence[Path]) -> Path:
    """Return the folder the steps of some configs start in; plan files start where the user is.

    Raises:
        UsageError: they belong to different repos.
    """
    from tipcheck.config_plans.find import root_of

    roots = {root_of(file) if file.suffix != ".json" else Path.cwd() for file in files}
    if len(roots) > 1:
        listed = ", ".join(sorted(map(str, roots)))
        raise UsageError(
            f"these configs belong to {len(roots)} repos ({listed})", hint="run them one by one"
        )
    return roots.pop()
