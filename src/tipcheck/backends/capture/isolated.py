"""Computes the answers of a layer in a forked process that may do what it likes.

The user's process forks a process that forks a guard and leaves at once: the guard is nobody's
child, so no ``wait`` of the user's ever meets it. The guard forks the worker, reads what it prints
and keeps the end of that, ends it when its time is up, and writes down how it ended. Guard and
worker hold nothing of the command: what was open for writing leads nowhere in them.

A process that uses a GPU cannot be forked. There the answers are computed in the process itself,
with everything put back afterwards that can be put back.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import resource
import select
import signal
import stat
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any, NoReturn

from .files import LOCK, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TAIL = 16_384
_LINES = 8


def answer_apart(
    kind: str, path: str, folder: str, settings: Mapping[str, Any], what: tuple[Any, ...]
) -> None:
    """Have a save's answers computed, in a process of their own where that can be.

    Args:
        kind: ``jit.save`` or ``save_inference_model``.
        path: absolute path of the export, without the ending.
        folder: where everything about it goes.
        settings: of the capture: ``limit`` seconds and more.
        what: what the save was given.
    """
    if settings.get("in_process") or _uses_gpu():
        _answer_here(kind, path, folder, settings, what)
        return
    with _no_child_signal(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of threads
        pid = os.fork()
        if pid == 0:
            _be_guard(kind, path, folder, settings, what)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    if settings.get("wait"):
        _wait_at_end(folder)


def _uses_gpu() -> bool:
    paddle: Any = sys.modules["paddle"]
    built = any(
        getattr(paddle, f"is_compiled_with_{name}", bool)() for name in ("cuda", "rocm", "xpu")
    )
    return built and not str(paddle.get_device()).startswith("cpu")


@contextlib.contextmanager
def _no_child_signal() -> Iterator[None]:
    """Keep a handler of the user's from hearing of the one child it did not start."""
    before: Any = None
    try:
        if callable(signal.getsignal(signal.SIGCHLD)):
            before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    except ValueError:  # not the main thread
        before = None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGCHLD, before)


_waited: dict[int, list[str]] = {}


def _wait_at_end(folder: str) -> None:
    """Let this process stay until the answers are there, where what it leaves behind is ended."""
    import atexit

    mine = _waited.setdefault(os.getpid(), [])
    if not mine:
        atexit.register(_wait_all, os.getpid())
    mine.append(folder)


def _wait_all(pid: int) -> None:
    if pid != os.getpid():
        return  # a process that the command forked: its parent waits
    for folder in _waited.get(pid, []):
        with contextlib.suppress(OSError), open(os.path.join(folder, LOCK), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
    from .saves import keep_all

    with contextlib.suppress(OSError):
        keep_all()


# The guard ---------------------------------------------------------------------------------------


def _be_guard(*what: Any) -> NoReturn:  # noqa: ANN401
    """Become the guard, by way of a process that is gone as soon as the guard stands."""
    status = 1
    try:
        ready, told = os.pipe()
        if os.fork() == 0:
            os.close(ready)
            _guard(told, *what)
        os.close(told)
        os.read(ready, 1)  # or the guard died, which closes the pipe
        status = 0
    finally:
        os._exit(status)


def _guard(
    told: int,
    kind: str,
    path: str,
    folder: str,
    settings: Mapping[str, Any],
    what: tuple[Any, ...],
) -> NoReturn:
    end: dict[str, Any] = {}
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGALRM):
            with contextlib.suppress(ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        lock = os.open(os.path.join(folder, LOCK), os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        _let_go({told, lock})
        write_json(os.path.join(folder, "guard.json"), {"pid": os.getpid()})
        os.write(told, b".")
        os.close(told)
        output, printed = os.pipe()
        worker = os.fork()
        if worker == 0:
            os.close(output)
            os.close(lock)
            _be_worker(printed, kind, path, folder, settings, what)
        os.close(printed)
        end = _watch(worker, output, float(settings.get("limit", 600)))
    except BaseException as error:
        end = {"trouble": f"{type(error).__name__}: {error}"}
    finally:
        with contextlib.suppress(OSError):
            write_json(os.path.join(folder, "end.json"), end)
        os._exit(0)


def _let_go(keep: set[int]) -> None:
    """Let everything that is open for writing, or shared with the command, lead nowhere."""
    nothing = os.open(os.devnull, os.O_RDWR)
    keep = keep | {nothing}
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number in keep:
            continue
        try:
            mode = os.fstat(number).st_mode
            flags = fcntl.fcntl(number, fcntl.F_GETFL)
            regular = stat.S_ISREG(mode)
            if number > 2 and regular and flags & os.O_ACCMODE == os.O_RDONLY:
                _reopen(number)  # with a place of its own in the file
            elif number <= 2 or regular or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                os.dup2(nothing, number, inheritable=number <= 2)
        except OSError:  # the descriptor that lists them, or a file that is gone
            continue
    os.close(nothing)


def _reopen(number: int) -> None:
    place = os.lseek(number, 0, os.SEEK_CUR)
    again = os.open(f"/proc/self/fd/{number}", os.O_RDONLY)
    os.lseek(again, place, os.SEEK_SET)
    os.dup2(again, number, inheritable=False)
    os.close(again)


def _watch(worker: int, output: int, limit: float) -> dict[str, Any]:
    """Read what the worker prints until it ends or its time is up; return how it ended."""
    begin = time.monotonic()
    tail, printed, timed_out = b"", 0, False
    while True:
        left = begin + limit - time.monotonic()
        if left <= 0:
            timed_out = True
            break
        if select.select([output], [], [], min(left, 0.5))[0]:
            chunk = os.read(output, 1 << 20)
            if not chunk:
                break
            printed += len(chunk)
            tail = (tail + chunk)[-_TAIL:]
        elif os.waitid(os.P_PID, worker, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break  # it ended, but something it started keeps the pipe open
    while not timed_out and not os.waitid(os.P_PID, worker, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if time.monotonic() > begin + limit:  # it closed its output and went on
            timed_out = True
        time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    lines = [line.rstrip() for line in tail.decode("utf-8", "replace").splitlines()]
    return {
        "exit_code": code if code >= 0 else None,
        "signal": -code if code < 0 and not timed_out else None,
        "timed_out": timed_out,
        "limit": limit,
        "seconds": round(time.monotonic() - begin, 3),
        "printed": printed,
        "last_lines": [line for line in lines if line][-_LINES:],
    }


# The worker --------------------------------------------------------------------------------------


def _be_worker(
    printed: int,
    kind: str,
    path: str,
    folder: str,
    settings: Mapping[str, Any],
    what: tuple[Any, ...],
) -> NoReturn:
    status = 1
    try:
        os.setpgid(0, 0)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        os.close(printed)
        _print_there()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.dont_write_bytecode = True
        sys.addaudithook(_write_nothing(folder))
        _run_without_threads()
        from .answers import answer

        answer(kind, path, folder, settings, what)
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)


_held_back: list[Any] = []
"""The user's streams: let go of, they would write what the user's process is to write."""


def _print_there() -> None:
    """Let Python's own streams be fresh ones: in the user's, output may be held back."""
    _held_back.extend((sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__))
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = io.TextIOWrapper(
            io.FileIO(number, "w", closefd=False), encoding="utf-8", errors="replace",
            write_through=True,
        )  # fmt: skip
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _run_without_threads() -> None:
    """Let the executor of static programs do without threads: they do not survive a fork."""
    paddle: Any = sys.modules["paddle"]
    for flag in ("FLAGS_enable_pir_in_executor_trace_run", "FLAGS_new_executor_serial_run"):
        with contextlib.suppress(ValueError):  # another version of Paddle
            paddle.set_flags({flag: True})


_CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link",
            "os.symlink", "shutil.rmtree", "shutil.move", "shutil.copyfile")  # fmt: skip


def _write_nothing(folder: str) -> Any:  # noqa: ANN401 - an audit hook
    """Return an audit hook that lets nothing be written but below ``folder``."""
    inside = folder + os.sep

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            if mode is None:
                writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            else:
                writes = any(letter in mode for letter in "wax+")
            if not writes or isinstance(path, int):
                return
        elif event in _CHANGES:
            path = arguments[1] if event in {"os.link", "os.symlink"} else arguments[0]
        else:
            return
        try:
            text = os.path.abspath(os.fsdecode(path))
        except TypeError:
            return
        if not (text + os.sep).startswith(inside) and not text.startswith("/dev/"):
            raise PermissionError(f"the layer writes to {text} when it runs, which is held back")

    return hook


# Without a fork ----------------------------------------------------------------------------------


def _answer_here(
    kind: str, path: str, folder: str, settings: Mapping[str, Any], what: tuple[Any, ...]
) -> None:
    """Compute the answers in the user's process, and put back what that has changed."""
    from .answers import answer
    from .put_back import everything_put_back

    begin = time.monotonic()
    end: dict[str, Any] = {"exit_code": 0, "in_process": True}
    printed = os.path.join(folder, "printed.txt")
    try:
        with everything_put_back(what, printed):
            answer(kind, path, folder, settings, what)
    except BaseException as error:
        end["exit_code"] = 1
        end["last_lines"] = [f"{type(error).__name__}: {error}"]
    end["seconds"] = round(time.monotonic() - begin, 3)
    write_json(os.path.join(folder, "end.json"), end)
