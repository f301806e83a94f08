"""Where ``check_inference.py`` has to lie for a patched file to find it, and when it can go."""

from __future__ import annotations

import os
from pathlib import Path

from tipcheck.backends.source_patch.edit import IMPORT, MODULE

FILE = f"{MODULE}.py"
_SOURCE = Path(__file__).with_name(FILE)
_ROOT_SIGNS = (".git", "setup.py", "pyproject.toml", "requirements.txt")
_NO_CODE = {"__pycache__", "node_modules", "site-packages"}


def places_for(file: Path) -> list[Path]:
    """Return the folders to put the module in, so that ``import check_inference`` finds it.

    A script finds what lies beside it. A module of a package is imported by way of the folder that
    the package lies in, so that this folder is searched. The repo's own root, which export scripts
    like to add to the search path, is where the seed of this check put it.
    """
    folder = file.resolve().parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    root = _root_of(folder)
    return list(dict.fromkeys(filter(None, (folder, root))))


def _root_of(folder: Path) -> Path | None:
    for above in (folder, *folder.parents):
        if any((above / sign).exists() for sign in _ROOT_SIGNS):
            return above
    return None


def put_module(folder: Path) -> str:
    """Write the module into a folder; return why it was left alone, or an empty text."""
    target = folder / FILE
    text = _SOURCE.read_bytes()
    if target.exists() and target.read_bytes() != text:
        return f"{target} is another file of that name, which stays"
    target.write_bytes(text)
    return ""


def take_module(folder: Path) -> bool:
    """Remove the module from a folder, if it is ours and no file below still needs it."""
    target = folder / FILE
    if not target.is_file() or target.read_bytes() != _SOURCE.read_bytes() or _is_needed(folder):
        return False
    target.unlink()
    return True


def _is_needed(folder: Path) -> bool:
    wanted = IMPORT.encode()
    for base, inner, files in os.walk(folder):
        inner[:] = [name for name in inner if name not in _NO_CODE and not name.startswith(".")]
        for name in files:
            path = Path(base, name)
            if name.endswith(".py") and name != FILE and wanted in _read(path):
                return True
    return False


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
