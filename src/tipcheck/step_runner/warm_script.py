"""Becomes ``python script.py args``, in a process forked for it: what ``exec`` would have done.

A script must not notice where it came from: its ``__main__``, ``sys.argv``, ``sys.path[0]``, file
names, signals, descriptors, random numbers, tracebacks and exit code are those of an interpreter
that was started for it. The process does not return from here. It ends as an interpreter does
(threads, ``atexit``, the module's own objects, buffers), but without taking down what it shares
with the process it was forked from.

Runs inside the warm server, so it imports the standard library only.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import gc
import importlib.machinery
import io
import os
import signal
import sys
import threading
import types
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

_FLUSH_FAILED = 120
_WRITERS = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
_DIED_OF_INTERRUPT = -int(signal.SIGINT)


def change_environment(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Turn an environment into another; what imports have set in between stays."""
    for name in before:
        if name not in after:
            os.environ.pop(name, None)
    for name, value in after.items():
        if before.get(name) != value:
            os.environ[name] = value


def close_descriptors(keep: Collection[int]) -> None:
    """Close all descriptors but the standard ones and ``keep``, as ``exec`` does."""
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names are all that is needed
        if int(entry) > 2 and int(entry) not in keep:
            with contextlib.suppress(OSError):  # the one that lists them
                os.close(int(entry))


def run_script(argv: Sequence[str], prepare: Callable[[], None]) -> NoReturn:
    """Run a script as ``__main__`` and end the process as an interpreter does.

    Args:
        argv: interpreter, script and arguments.
        prepare: brings the process to where an interpreter is before it reads the script; what it
            raises is an error of the start.
    """
    prepare()
    sys.argv = list(argv[2:] if argv[1] == "-u" else argv[1:])
    sys.orig_argv = [sys.orig_argv[0], *argv[1:]]
    script = os.path.join(os.getcwd(), sys.argv[0])  # noqa: PTH109, PTH118 - not normalised either
    sys.path.insert(0, os.path.dirname(os.path.realpath(script)))  # noqa: PTH120
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.enable()
    status = 1
    try:
        main = _main_module(script)
        status = _execute(script, main)
        status = _finish(main, status)
    finally:
        if status == _DIED_OF_INTERRUPT:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        os._exit(status & 0xFF)


def _main_module(script: str) -> types.ModuleType:
    main = types.ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", script)
    main.__dict__.update(
        __annotations__={},
        __builtins__=builtins,
        __file__=script,
        __cached__=None,
        __loader__=loader,
    )
    sys.modules["__main__"] = main
    return main


def _execute(script: str, main: types.ModuleType) -> int:
    """Run the script's code; return the status that the process shall end with."""
    caught: BaseException | None = None
    try:
        with io.open_code(script) as file:
            source = file.read()
        code = compile(source, script, "exec", dont_inherit=True)
        del source, file
        exec(code, main.__dict__)  # noqa: S102 - this is what an interpreter does
    except BaseException as error:  # noqa: BLE001 - like an interpreter
        caught = error.with_traceback(_without_first(error))
    for stream in (sys.stderr, sys.stdout):
        with contextlib.suppress(Exception):
            stream.flush()
    return 0 if caught is None else _report(caught)


def _without_first(error: BaseException) -> types.TracebackType | None:
    """Return an exception's traceback without the frame of this module."""
    return error.__traceback__.tb_next if error.__traceback__ else None


def _report(error: BaseException) -> int:
    """Show what a script did not catch; return the status that it means."""
    if isinstance(error, SystemExit):
        return _exit_status(error)
    broken: BaseException | None = None
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException as another:  # noqa: BLE001 - a hook of the script
        broken = another.with_traceback(_without_first(another))
    if isinstance(broken, SystemExit):
        return _exit_status(broken)
    if broken is not None:
        print("Error in sys.excepthook:", file=sys.stderr)  # noqa: T201 - the same words
        sys.__excepthook__(type(broken), broken, broken.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)  # noqa: T201
        sys.__excepthook__(type(error), error, error.__traceback__)
    return _DIED_OF_INTERRUPT if isinstance(error, KeyboardInterrupt) else 1


def _exit_status(ending: SystemExit) -> int:
    if ending.code is None:
        return 0
    if isinstance(ending.code, int):
        return ending.code & 0xFF
    with contextlib.suppress(Exception):
        print(ending.code, file=sys.stderr)  # noqa: T201 - where an interpreter prints it
    return 1


def _finish(main: types.ModuleType, status: int) -> int:
    """End what an interpreter ends, in its order; return the status."""
    threads: Any = threading
    threads._shutdown()  # noqa: SLF001 - what an interpreter calls
    atexit._run_exitfuncs()  # noqa: SLF001 - the same
    with contextlib.suppress(Exception):
        if sys.stdout is not None:
            sys.stdout.flush()
    for name in [*main.__dict__]:
        if name != "__builtins__":
            main.__dict__.pop(name, None)  # one by one: each may run code
    gc.collect()
    for thing in gc.get_objects():
        if issubclass(type(thing), _WRITERS) and thing not in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                thing.flush()
    return _flush_standard(status)


def _flush_standard(status: int) -> int:
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except Exception:  # noqa: BLE001 - an interpreter ends with this number too
        status = _FLUSH_FAILED
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    return status
