"""Whether an export that is to be quantised left a quantised model: a look into the files it wrote.

A PACT chain whose training forgot its quantisers exports a plain model and returns 0. Every model
format names its ops in its file, so that no framework is needed to see whether one of them
quantises. An export that left no model to look at has shown nothing either.

Runs inside the supervisor, which is where the files are, so it imports the standard library only.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MEANT = re.compile(r"(?<![a-z])(?:pact|ptq|quant\w*|kl_?quant\w*|qat)(?![a-z])", re.IGNORECASE)
_PIR_OP = re.compile(rb'"#"\s*:\s*"[^"]*(?:quantize|round)[^"]*"')
_OTHER_OP = re.compile(rb"quantize|\x05round", re.IGNORECASE)
_PIR_HEAD = b'"magic":"pir"'
_ENDINGS = (".json", ".pdmodel", ".onnx")
_OLDER_NAME = "__model__"
_DEEPEST = 3
_CLOCK_SLACK = 1.0
_LARGEST = 1 << 30


def is_meant(*words: str) -> bool:
    """Whether one of the words of a step (its id, its config's name) says it is quantised."""
    return any(_MEANT.search(word.replace("_", " ")) for word in words)


def why_not(argv: Sequence[str], cwd: str, began: float) -> str:
    """Return why an export is no quantised one, or an empty text when it is.

    Args:
        argv: its command; models are looked for in the folders that it names.
        cwd: its working directory.
        began: when it began, in seconds of the epoch; older files are none of its own.
    """
    models = list(_models(argv, cwd, began))
    if not models:
        return "no exported model was found in a folder that its command names"
    if any(_has_quantised_op(model) for model in models):
        return ""
    names = ", ".join(sorted({os.path.basename(model) for model in models}))  # noqa: PTH119
    return f"the exported model has no quantised op ({names})"


def _models(argv: Sequence[str], cwd: str, began: float) -> Iterator[str]:
    seen: set[str] = set()
    for word in argv[1:]:
        for text in {word, word.rpartition("=")[2]} - {""}:
            path = os.path.normpath(os.path.join(cwd, text))  # noqa: PTH118 - once per word
            folder = path if os.path.isdir(path) else os.path.dirname(path)  # noqa: PTH112, PTH120
            if folder in seen or cwd.startswith(folder.rstrip("/") + "/") or folder == cwd:
                continue
            seen.add(folder)
            yield from _below(folder, began, _DEEPEST)


def _below(folder: str, began: float, deep: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and deep > 1:
                    yield from _below(entry.path, began, deep - 1)
                elif _is_model(entry, began):
                    yield entry.path
    except OSError:
        return  # not there, or not ours to read


def _is_model(entry: os.DirEntry[str], began: float) -> bool:
    if not entry.name.endswith(_ENDINGS) and entry.name != _OLDER_NAME:
        return False
    status = entry.stat()
    if status.st_mtime < began - _CLOCK_SLACK or status.st_size > _LARGEST:
        return False
    if not entry.name.endswith(".json"):
        return True
    with open(entry.path, "rb") as file:  # noqa: PTH123 - a plain read
        return _PIR_HEAD in file.read(4096).replace(b" ", b"")


def _has_quantised_op(model: str) -> bool:
    pattern = _PIR_OP if model.endswith(".json") else _OTHER_OP
    try:
        with open(model, "rb") as file:  # noqa: PTH123 - a plain read
            return pattern.search(file.read()) is not None
    except OSError:
        return False
