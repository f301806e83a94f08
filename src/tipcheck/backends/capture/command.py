"""Starts a user's command so that its exports are noticed, and waits for what it leaves.

Nothing about the command changes but two variables of its environment, and those hide themselves in
every Python that reads them. Its three standard streams are those of this process.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.capture.files import KEPT, LOCK, VARIABLE, exported_files
from tipcheck.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SITE = Path(__file__).with_name("site")
_TICK = 0.1
_SLACK = 5.0
"""Seconds beyond its time limit after which a guard is no longer waited for."""
_NOT_FOUND, _NOT_ALLOWED = 127, 126
_SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class Watch:
    """How exports are to be looked at.

    Attributes:
        kinds: kinds of inputs, as ``inputs.KINDS`` calls them.
        seed: where their random numbers start.
        limit: seconds that the answers of one layer may take.
        wait: whether a process stays until the answers of its layers are there; for where whatever
            a command leaves running is ended.
        in_process: whether to run the layer in the user's own process, as on a GPU.
        locks: folder of locks for commands that run side by side and may export to one path; each
            then keeps a copy of what it exported. Empty for a command on its own.
    """

    kinds: tuple[str, ...] = ("normal", "uniform")
    seed: int = 0
    limit: float = 120.0
    wait: bool = False
    in_process: bool = False
    locks: str = ""


def environment(
    before: Mapping[str, str], folder: Path, watch: Watch, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return an environment in which every save leaves a folder in ``folder``.

    Args:
        before: the environment that the command would have.
        folder: absolute, and there already.
        watch: how to look.
        extra: variables to set besides.
    """
    path = before.get("PYTHONPATH")
    settings: dict[str, Any] = {
        "folder": str(folder),
        "pythonpath": path,
        "kinds": list(watch.kinds),
        "seed": watch.seed,
        "limit": watch.limit,
        "wait": watch.wait,
        "in_process": watch.in_process,
        "locks": watch.locks,
    }
    return {
        **before,
        **(extra or {}),
        "PYTHONPATH": str(SITE) if path is None else f"{SITE}{os.pathsep}{path}",
        VARIABLE: json.dumps(settings),
    }


def run_watched(argv: Sequence[str], folder: Path, watch: Watch) -> int:
    """Run a command as the user typed it; return its exit code, as a shell would tell it.

    Raises:
        UsageError: there is no such command.
    """
    program = shutil.which(argv[0])
    if program is None:
        raise UsageError(
            "command not found", where=argv[0], hint="type it behind `--` as in a shell"
        )
    try:
        command = subprocess.Popen(
            list(argv), executable=program, env=environment(os.environ, folder, watch)
        )
    except OSError as error:
        raise UsageError(f"cannot be started: {error.strerror}", where=argv[0]) from None
    held = Held()
    with _signals_passed_on(command):
        while True:
            try:
                code = command.wait(_TICK)
            except subprocess.TimeoutExpired:  # noqa: PERF203 - once a tick
                held.look(folder)
            else:
                break
    wait_for_answers(folder, watch.limit)
    held.keep()
    return code if code >= 0 else _SIGNALLED - code


@contextlib.contextmanager
def _signals_passed_on(command: subprocess.Popen[bytes]) -> Any:  # noqa: ANN401 - a generator
    """Let the command decide about Ctrl-C, which reaches it too; pass SIGTERM on to it."""

    def pass_on(number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            command.send_signal(number)

    try:
        before = [
            (number, signal.signal(number, action))
            for number, action in ((signal.SIGINT, _ignore), (signal.SIGTERM, pass_on))
        ]
    except ValueError:  # not the main thread
        before = []
    try:
        yield
    finally:
        for number, action in before:
            signal.signal(number, action)


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing; unlike SIG_IGN, the command does not inherit it."""


class Held:
    """Keeps hold of exported files, which a shell script may remove after its Python has ended."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[Path, int]] = {}

    def look(self, folder: Path) -> None:
        """Take hold of what has been exported by processes that have ended."""
        for note in sorted(folder.glob("*/saved.json")):
            told = _read(note)
            if not told or _is_alive(int(told["pid"])):
                continue
            for file in exported_files(told["path"]):
                if file not in self._files:
                    with contextlib.suppress(OSError):
                        self._files[file] = (note.parent, os.open(file, os.O_RDONLY))

    def keep(self) -> None:
        """Copy those that are gone, and let go of all."""
        for file, (capture, descriptor) in self._files.items():
            target = capture / KEPT / Path(file).name
            if not os.path.exists(file) and not target.exists():
                target.parent.mkdir(exist_ok=True)
                with open(descriptor, "rb", closefd=False) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
            os.close(descriptor)
        self._files.clear()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def wait_for_answers(folder: Path, limit: float) -> None:
    """Wait until the answers of every layer that was saved are there, or will never be."""
    deadline = time.monotonic() + limit + _SLACK
    for capture in sorted(folder.glob("*/saved.json")):
        lock = capture.with_name(LOCK)
        while lock.exists() and not _is_free(lock) and time.monotonic() < deadline:
            time.sleep(0.02)
        if lock.exists() and not _is_free(lock):
            end_guard(capture.parent)


def end_guard(capture: Path) -> None:
    """End a guard, and with it its worker, that does not end by itself."""
    told = _read(capture / "guard.json")
    if told:
        with contextlib.suppress(OSError):
            os.killpg(int(told["pid"]), signal.SIGKILL)


def _is_free(lock: Path) -> bool:
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def make_folder(base: Path) -> Path:
    """Return a folder for captures, made if need be.

    Raises:
        ToolError: it cannot be made.
    """
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(f"cannot be made: {error.strerror}", where=str(base)) from None
    return base.absolute()
