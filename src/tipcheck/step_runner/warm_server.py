"""The process that imports paddle once: a keeper whose jobs are forked, not executed.

It is started by the interpreter and in the environment of the first job that wants it, imports
paddle in its main thread and nothing else (no thread pool, no layer, no device: what a framework
has begun does not survive a fork), says on its standard output that it is ready, and is a keeper
from then on. Limits, logs and endings are therefore those of the engine ``local``.

A forked script does not see paddle until it imports it. Only then do the modules appear, together
with what a real import would have done besides: its warnings in the log, its signal handlers, and
the variables it sets.

The only file of the engine room that may import a framework.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.machinery
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, cast

from tipcheck.step_runner import proctree
from tipcheck.step_runner.keeper import keep
from tipcheck.step_runner.warm_names import matters
from tipcheck.step_runner.warm_script import change_environment, close_descriptors, run_script

if TYPE_CHECKING:
    import types
    from collections.abc import Mapping, Sequence

_ACTION_SIZE = 256
"""More bytes than the ``sigaction`` of any Linux has."""
_POINTER = 8
_libc = ctypes.CDLL(None, use_errno=True)


class Imported:
    """What importing paddle did to this process, taken back until a script imports it."""

    def __init__(self, name: str) -> None:
        """Import a framework, and remember everything that changed."""
        self.name = name
        self._environment = dict(os.environ)
        self._path = list(sys.path)
        actions = _signal_actions()
        self._noise = _import_quietly(name)
        self._actions = {
            number: action
            for number, action in _signal_actions().items()
            if action[:_POINTER] != actions[number][:_POINTER]
        }
        self._before = {number: actions[number] for number in self._actions}
        self._variables = {
            name: value
            for name, value in os.environ.items()
            if self._environment.get(name) != value
        }
        self._added = [entry for entry in sys.path if entry not in self._path]
        self._modules: dict[str, types.ModuleType] = {}
        self.revealed = False
        self.descriptors = _open_descriptors()
        self.loaded = sorted({name.partition(".")[0] for name in sys.modules} - {"__main__"})

    def hide(self) -> None:
        """Take back what can be taken back, in a process that is about to run a script."""
        for number, action in self._before.items():
            _libc.sigaction(number, ctypes.create_string_buffer(action, _ACTION_SIZE), None)
        for name in self._variables:
            if name in self._environment:
                os.environ[name] = self._environment[name]
            else:
                os.environ.pop(name, None)
        sys.path[:] = self._path
        for name in [*sys.modules]:
            if name == self.name or name.startswith(self.name + "."):
                self._modules[name] = sys.modules.pop(name)
        sys.meta_path.insert(0, _Reveal(self))
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed()  # as fresh as a fresh process; ``random`` sees to itself
        processes = sys.modules.get("multiprocessing.process")
        if processes is not None:
            processes.current_process().authkey = os.urandom(32)

    def reveal(self) -> types.ModuleType:
        """Let it be imported, as far as the script can see; return its module."""
        self.revealed = True
        for number, action in self._actions.items():
            _libc.sigaction(number, ctypes.create_string_buffer(action, _ACTION_SIZE), None)
        for name, value in self._variables.items():
            if name not in os.environ:
                os.environ[name] = value
        sys.path += [entry for entry in self._added if entry not in sys.path]
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os.write(2, self._noise)
        sys.modules.update(self._modules)
        module: Any = self._modules[self.name]
        if self.name == "paddle":
            module.base.core.default_cpu_generator().seed()
        return cast("types.ModuleType", module)


class _Reveal:
    """Finds the hidden modules: the import system asks it before all others."""

    def __init__(self, imported: Imported) -> None:
        self._imported = imported
        self._spec: importlib.machinery.ModuleSpec | None = None

    def find_spec(
        self, name: str, _path: object = None, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._imported.name:
            return None
        loader: Any = self
        return importlib.machinery.ModuleSpec(name, loader, is_package=True)

    def create_module(self, _spec: object) -> types.ModuleType:
        sys.meta_path.remove(self)
        module = self._imported.reveal()
        self._spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec


def refuse_late_variables(refusal: Any, imported: Imported) -> None:  # noqa: ANN401 - shared bytes
    """End this process, with a sign, when its script sets what would have been read by now.

    The sign is a byte of memory shared with the supervisor: no descriptor that the script could
    see, and no exit code that it could mean itself.
    """

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in {"os.putenv", "os.unsetenv"} or imported.revealed:
            return
        name = os.fsdecode(arguments[0])
        value = os.fsdecode(arguments[1]) if event == "os.putenv" else None
        if matters(name) and os.environ.get(name) != value:
            refusal[0] = 1
            os._exit(0)

    sys.addaudithook(hook)


def _import_quietly(name: str) -> bytes:
    """Import a framework; return what that printed."""
    noise = os.memfd_create("noise")
    stdout, stderr = os.dup(1), os.dup(2)
    os.dup2(noise, 1)
    os.dup2(noise, 2)
    try:
        importlib.import_module("zlib")  # paddle 2.6 crashes if it comes first
        importlib.import_module(name)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for descriptor in (stdout, stderr):
            os.close(descriptor)
    printed = os.pread(noise, os.fstat(noise).st_size, 0)
    os.close(noise)
    return printed


def unfit(module: object) -> str:
    """Return why scripts must not be forked from a process that has imported a module."""
    devices = ("cuda", "rocm", "xpu", "ipu")
    built = [name for name in devices if getattr(module, f"is_compiled_with_{name}", bool)()]
    core = getattr(getattr(module, "base", None), "core", None)
    built += getattr(core, "get_all_custom_device_type", list)()
    return f"it is built for {', '.join(built)}, which does not survive a fork" if built else ""


def _open_descriptors() -> set[int]:
    listed = [int(entry) for entry in os.listdir("/proc/self/fd")]  # noqa: PTH208
    return {number for number in listed if os.path.exists(f"/proc/self/fd/{number}")}  # noqa: PTH110


def _signal_actions() -> dict[int, bytes]:
    """Return how every signal is handled, below what Python knows of it."""
    actions = {}
    for number in range(1, signal.NSIG):
        action = ctypes.create_string_buffer(_ACTION_SIZE)
        if _libc.sigaction(number, None, action) == 0:
            actions[number] = action.raw
    return actions


def main(arguments: Sequence[str]) -> None:
    """Entry of the process: the module to import, and the descriptors as JSON."""
    preload, text = arguments
    descriptors: dict[str, int] = json.loads(text)
    inherited = {*descriptors.values()}
    for descriptor in inherited:
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)  # noqa: FBT003 - a function of os
    _leave_no_trace()
    begun = dict(os.environ)
    proctree.die_with_parent(os.getppid())  # until the keeper watches the tool itself
    gc.disable()  # next to nothing of an import is garbage, and looking for it takes its time
    imported = Imported(preload)
    proctree.live_without_parent()
    why_not = unfit(sys.modules[preload])
    if why_not:
        sys.exit(why_not)
    kept = imported.descriptors - inherited

    def launch(job: Mapping[str, Any]) -> None:
        def prepare() -> None:
            imported.hide()
            change_environment(begun, job["env"])
            close_descriptors(kept)
            if job["refusal"] is not None:
                refuse_late_variables(job["refusal"], imported)

        run_script(job["argv"], prepare)

    os.write(descriptors["reports"], json.dumps({"modules": imported.loaded}).encode() + b"\n")
    try:
        keep(descriptors, launch)
    finally:
        os._exit(0)  # what a framework takes down at its end is of no use here


def _leave_no_trace() -> None:
    """Take tipcheck out of what a script can import, or see: this process keeps what it has."""
    del sys.path[0]
    for name in [*sys.modules]:
        if name.partition(".")[0] == "tipcheck":
            del sys.modules[name]
