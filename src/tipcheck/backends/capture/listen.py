"""Listens, inside a user's process, for paddle to appear and for exports to be taken away again.

An audit hook is the one place in Python from which all of this can be seen without standing between
the user's code and what it calls: no wrapped loader, no replaced function, hence no line of ours in
a traceback. It does three things:

- as soon as ``paddle.jit.api`` is there, it registers with the list of hooks that ``jit.save`` runs
  through by itself;
- when an exported file is about to be removed or moved, it keeps a copy;
- when another program is started, it hands the settings on, which the command does not see itself.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import types
    from collections.abc import MutableMapping

from .files import VARIABLE

_REMOVALS = ("os.remove", "os.rename", "shutil.rmtree", "shutil.move")
_STARTS = {"subprocess.Popen": 3, "os.exec": 2, "os.posix_spawn": 2, "os.system": -1}
"""Events that start a program, and which of their arguments is its environment."""


class Listener:
    """What one process knows of the capture it takes part in."""

    def __init__(self, here: str) -> None:
        """Read the settings and take them out of the environment that Python code sees."""
        self._here = here
        self._text = os.environ[VARIABLE]
        self.settings: dict[str, Any] = json.loads(self._text)
        self._busy = False
        self._waiting = True
        self._lent: tuple[MutableMapping[str, str], dict[str, str | None]] | None = None
        data: Any = os.environ._data  # type: ignore[attr-defined]  # noqa: SLF001 - without putenv
        data.pop(os.fsencode(VARIABLE), None)
        before = self.settings.get("pythonpath")
        if before is None:
            data.pop(b"PYTHONPATH", None)
        else:
            data[b"PYTHONPATH"] = os.fsencode(before)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Be the audit hook: called for everything, so the common case has to be short."""
        if self._busy:
            return
        if self._lent is not None:
            self._take_back()
        if self._waiting:
            module = sys.modules.get("paddle.jit.api")
            if module is not None and hasattr(module, "save"):
                self._guarded(self._register, module)
        elif event in _REMOVALS:
            self._guarded(self._keep, arguments[0])
        if event in _STARTS:
            self._guarded(self._lend, arguments, _STARTS[event])

    def _guarded(self, work: Any, *arguments: Any) -> None:  # noqa: ANN401 - any of the methods
        self._busy = True
        try:
            work(*arguments)
        except Exception:  # noqa: S110 - the command must not notice
            pass
        finally:
            self._busy = False

    def _register(self, module: Any) -> None:  # noqa: ANN401 - Paddle has no types
        self._waiting = False
        from .saves import register

        register(module, self.settings)

    def _keep(self, path: object) -> None:
        from .saves import keep_files_below

        if isinstance(path, (str, bytes, os.PathLike)):
            keep_files_below(os.path.abspath(os.fsdecode(path)))

    # Programs that are started -----------------------------------------------------------------

    def _lend(self, arguments: tuple[Any, ...], place: int) -> None:
        """Let a program that starts now have the settings, whichever environment it gets."""
        env = arguments[place] if place >= 0 else None
        seen = os.environ.get("PYTHONPATH") if env is None or env is os.environ else None
        if env is None:  # what the C library holds is inherited
            os.putenv("PYTHONPATH", self._path(seen))
            os.putenv(VARIABLE, self._text_for(seen))
            return
        if not hasattr(env, "__setitem__") or VARIABLE in env:
            return
        seen = env.get("PYTHONPATH")
        mine = {"PYTHONPATH": self._path(seen), VARIABLE: self._text_for(seen)}
        caller = _caller("_execute_child")
        if caller is not None:  # of subprocess, where a variable holds the environment
            _set_local(caller, "env", {**env, **mine})
        elif env is not os.environ:
            self._lent = (env, {name: env.get(name) for name in mine})
            env.update(mine)

    def _take_back(self) -> None:
        """Undo ``_lend``, as soon as anything else happens."""
        assert self._lent is not None  # noqa: S101 - asked before
        (env, before), self._lent = self._lent, None
        for name, value in before.items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = value

    def _path(self, before: str | None) -> str:
        return self._here if before is None else f"{self._here}:{before}"

    def _text_for(self, before: str | None) -> str:
        return json.dumps({**self.settings, "pythonpath": before})


def _caller(name: str) -> types.FrameType | None:
    """Return the nearest frame of a function, among the few below the audit hook."""
    frame: types.FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no other way
    for _ in range(6):
        if frame is None or frame.f_code.co_name == name:
            return frame
        frame = frame.f_back
    return None


def _set_local(frame: types.FrameType, name: str, value: object) -> None:
    """Give a local variable of a running function another value."""
    frame.f_locals[name] = value
    if sys.version_info < (3, 13):  # from then on, the line above is all it takes
        import ctypes

        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def start(here: str) -> None:
    """Begin to listen in this process."""
    sys.addaudithook(Listener(here).hear)
