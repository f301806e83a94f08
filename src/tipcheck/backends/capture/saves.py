"""What happens at each save, in the user's process: a note, a fork, and on with the save.

``jit.save`` runs a list of hooks before it does its own work; ours is one of them. The answers of
the layer are computed in a process forked at that moment, so that nothing the layer does (a crash,
an endless loop, other random numbers, output) can reach the command. ``save_inference_model`` has
no such list and is wrapped.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

from .files import KEPT, VARIABLE, exported_files, write_json

_LONGEST_WAIT = 600.0
"""Seconds that a save waits for another process to be done with the same path."""

_going_on = [False]
_locked: dict[tuple[int, str], int] = {}
_saved: dict[str, str] = {}
"""Folder of the newest capture of this process for each exported path."""


def register(api: Any, settings: Mapping[str, Any]) -> None:  # noqa: ANN401 - Paddle has no types
    """Have every save of this process noticed.

    Args:
        api: the module ``paddle.jit.api``.
        settings: what the command was started with.
    """

    def before_save(layer: Any, input_spec: Any, configs: Mapping[str, Any]) -> None:  # noqa: ANN401
        frame = sys._getframe(1)  # noqa: SLF001 - the hook is not told the path
        path = frame.f_locals.get("path")
        if path is not None:
            _notice("jit.save", path, settings, (layer, input_spec, dict(configs)))

    api._register_save_pre_hook(before_save)  # noqa: SLF001 - the only list of hooks there is
    for name in ("paddle.static.io", "paddle.static"):
        module = sys.modules.get(name)
        if hasattr(module, "save_inference_model"):
            original = module.save_inference_model  # type: ignore[union-attr]
            wrapped = _wrap_static(original, settings)
            module.save_inference_model = wrapped  # type: ignore[union-attr]


def _wrap_static(original: Callable[..., Any], settings: Mapping[str, Any]) -> Callable[..., Any]:
    if hasattr(original, "_tipcheck"):
        return original

    @functools.wraps(original)
    def save_inference_model(
        path_prefix: Any,  # noqa: ANN401 - of Paddle
        feed_vars: Any,  # noqa: ANN401
        fetch_vars: Any,  # noqa: ANN401
        *others: Any,  # noqa: ANN401
        **named: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        _notice("save_inference_model", path_prefix, settings, (feed_vars, fetch_vars, named))
        return original(path_prefix, feed_vars, fetch_vars, *others, **named)

    save_inference_model._tipcheck = True  # type: ignore[attr-defined]  # noqa: SLF001
    return save_inference_model


def _notice(kind: str, path: Any, settings: Mapping[str, Any], what: tuple[Any, ...]) -> None:  # noqa: ANN401
    if _going_on[0]:
        return
    _going_on[0] = True
    try:
        now = os.environ.get(VARIABLE)  # a forked worker of ours gets its own
        current = json.loads(now) if now else settings
        prefix = os.path.abspath(os.fsdecode(path))
        keep_files_below(prefix, before_overwriting=True)
        if current.get("locks"):
            _lock(prefix, current["locks"])
        folder = _new_folder(current["folder"])
        _saved[prefix] = folder
        note = {
            "kind": kind,
            "path": prefix,
            "given": os.fsdecode(path),
            "pid": os.getpid(),
            "time": time.time(),
            "cwd": os.getcwd(),
            "argv": [str(word) for word in sys.argv],
        }
        write_json(os.path.join(folder, "saved.json"), note)
        from .isolated import answer_apart

        answer_apart(kind, prefix, folder, current, what)
    except Exception as error:
        _say_failed(locals().get("folder"), error)
    finally:
        _going_on[0] = False


def _lock(prefix: str, folder: str) -> None:
    """Wait until no other process exports to a path; hold it until this process ends."""
    if (os.getpid(), prefix) in _locked:
        return
    name = hashlib.blake2b(prefix.encode("utf-8", "replace"), digest_size=12).hexdigest()
    descriptor = os.open(os.path.join(folder, name), os.O_CREAT | os.O_RDWR, 0o600)
    deadline = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < deadline:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # noqa: PERF203 - it waits anyway
            time.sleep(0.02)
        else:
            break
    _locked[os.getpid(), prefix] = descriptor


def _say_failed(folder: str | None, error: Exception) -> None:
    if folder is not None:
        told = {"trouble": f"{type(error).__name__}: {error}"}
        try:
            write_json(os.path.join(folder, "end.json"), told)
        except OSError:
            return


def _new_folder(base: str) -> str:
    number = 1
    while True:
        folder = os.path.join(base, f"{number:03}")
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            number += 1
        else:
            return folder


def keep_files_below(path: str, *, before_overwriting: bool = False) -> None:
    """Copy the exported files that are about to go, because ``path`` goes or is written again."""
    for prefix, folder in [*_saved.items()]:
        files = exported_files(prefix)
        if not before_overwriting:
            files = [file for file in files if file == path or file.startswith(path + os.sep)]
        elif prefix != path:
            continue
        kept = os.path.join(folder, KEPT)
        for file in files:
            copy = os.path.join(kept, os.path.basename(file))
            if not os.path.exists(copy):
                os.makedirs(kept, exist_ok=True)
                shutil.copyfile(file, copy)


def keep_all() -> None:
    """Copy everything that this process has exported."""
    for prefix in [*_saved]:
        keep_files_below(prefix, before_overwriting=True)
