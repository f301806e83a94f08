"""What a step depends on, as a fingerprint: a step that passed is believed while it stays the same.

A fingerprint has named parts, each a small map, so that a step that runs again can say why:

- ``arguments``: argv and working directory;
- ``environment``: a digest per variable that the step sets, that frameworks read, or that its code
  or its command names;
- ``config``: the config's text;
- ``code``: the script, and every Python file of the repo that it may import (``imports``);
- ``data``: every existing file and folder that the command line, or a YAML file or config named
  there, points to; small files by content, large files and folders by names, sizes and times;
- ``program``: the program, and for Python its version and the versions of all installed packages.

What a step itself writes (its output folder is an argument too) is no input: it is recognised by
having changed while the step ran, and only has to be there still, for the other steps too. What
the chain writes in its log folder is left out. Both are covered by the rule that a step runs again
when one that it needs ran again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tipcheck.step_runner.imports import ImportWalker

Part = Mapping[str, str]

_READ_BY_FRAMEWORKS = (
    "CUDA_", "FLAGS_", "GLOG_", "KMP_", "LD_", "MKL_", "NCCL_", "OMP_", "PADDLE_", "PYTHON",
)  # fmt: skip
OWN = "written by the step"
"""Stands in ``data`` for what a step wrote: its content is no input, but it has to stay there."""

_CONTENT_UP_TO = 4 * 1024 * 1024
_LARGE_FOLDER = 2000
_NO_DATA = {"__pycache__", ".git"}
_CLOCK_SLACK = 2.0
_QUOTED_NAME = re.compile(r"""["']([A-Z][A-Z0-9_]+)["']""")
_SHELL_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_ALWAYS_ANOTHER = {"OLDPWD", "PWD", "SHLVL", "_"}
_PATH_BREAKS = re.compile(r"""[\s'"=:|,;(){}\[\]]+""")
_PROBE = (
    "import sys, sysconfig; print(sys.version.replace('\\n', ' ')); "
    "print(*dict.fromkeys(p for p in sys.path if p.endswith('-packages')), sep='\\n')"
)
_NAMES = {
    "arguments": "its arguments changed",
    "environment": "environment changed",
    "config": "config changed",
    "code": "code changed",
    "data": "data changed",
    "program": "installed versions changed",
}


def digest(value: object) -> str:
    """Return a short digest of anything JSON can hold."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True).encode()
    return hashlib.blake2b(text, digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a step depends on, as it was when the step started.

    Attributes:
        arguments, environment, config, code, data, program: see the module's text.
    """

    arguments: Part
    environment: Part
    config: Part
    code: Part
    data: Part
    program: Part

    def parts(self) -> dict[str, Part]:
        """Return the parts by name."""
        return {name: getattr(self, name) for name in _NAMES}


def what_changed(old: Mapping[str, Part], new: Fingerprint) -> str:
    """Return what differs between a stored fingerprint and one of now; empty when nothing does."""
    for name, words in _NAMES.items():
        before, now = old.get(name, {}), new.parts()[name]
        if name == "data":  # what the step wrote only has to be there still
            now = {path: OWN if before.get(path) == OWN else now[path] for path in now}
        if before != now:
            keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
            return words if name == "arguments" else f"{words}: {_some(keys)}"
    return ""


def written_by(data: Iterable[Part]) -> set[str]:
    """Return the paths that the steps of a chain write, and the folders above them.

    Another step may be given such a path too. That it changed is then no news: what matters there
    is whether a step that it needs ran again.
    """
    own = {path for part in data for path, state in part.items() if state == OWN}
    return own | {str(folder) for path in own for folder in Path(path).parents}


def _some(keys: Sequence[str]) -> str:
    shown = ", ".join(sorted(keys)[:3])
    return shown if len(keys) <= 3 else f"{shown} and {len(keys) - 3} more"


class Fingerprinter:
    """Takes fingerprints of the steps of one run; remembers what it has read."""

    def __init__(self, root: Path, outputs: Iterable[Path]) -> None:
        """Look at the steps of one repo.

        Args:
            root: the repo's folder.
            outputs: folders that the chain itself writes to; nothing in them is an input.
        """
        self._root = root
        self._outputs = {str(folder) for folder in outputs}
        self._walker = ImportWalker(root, outputs)
        self._files: dict[str, tuple[tuple[int, int], str]] = {}
        self._folders: dict[str, tuple[str, float]] = {}
        self._mentions: dict[str, tuple[tuple[int, int], list[str]]] = {}
        self._programs: dict[str, dict[str, str]] = {}
        self._variables: dict[Path, tuple[tuple[int, int], set[str]]] = {}

    def take(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        own_env: Iterable[str],
        cwd: Path,
        texts: Sequence[Path],
    ) -> Fingerprint:
        """Take the fingerprint of a step that is about to start.

        Args:
            argv: its program and arguments.
            env: its whole environment.
            own_env: names of the variables that its plan or the user sets.
            cwd: its working directory.
            texts: the config it comes from, and what else says what it has to do, such as its
                gold; a missing file is no error.
        """
        config = texts[0]
        code = self._code(argv, env, cwd)
        named = self._names(argv, code)
        read = {name for name in env if name.startswith(_READ_BY_FRAMEWORKS) or name in named}
        read |= set(own_env)
        return Fingerprint(
            arguments={"command": digest([list(argv), str(cwd)])},
            environment={name: digest(env.get(name)) for name in sorted(read)},
            config=self._contents(texts),
            code=self._contents(code),
            data={path: state[0] for path, state in self._inputs(argv, cwd, config)},
            program=self._program(argv[0], env),
        )

    def settle(
        self, before: Part, argv: Sequence[str], cwd: Path, config: Path, ended: float
    ) -> dict[str, str]:
        """Return a fingerprint's ``data`` with what the step itself wrote marked as ``OWN``.

        Args:
            before: the ``data`` taken when the step started.
            argv: its program and arguments.
            cwd: its working directory.
            config: the config it comes from.
            ended: when it ended; what changed later was changed by someone else.
        """
        data = dict(before)
        for path, (state, newest) in self._inputs(argv, cwd, config):
            if before.get(path) != state and newest <= ended + _CLOCK_SLACK:
                data[path] = OWN
        return data

    # Code --------------------------------------------------------------------------------------

    def _code(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> list[Path]:
        scripts = [cwd / word for word in argv[1:] if word.endswith(".py")]
        search = [cwd, *(cwd / entry for entry in env.get("PYTHONPATH", "").split(":") if entry)]
        code = ""
        if Path(argv[0]).name.startswith(("python", "pypy")):
            for option, value in itertools.pairwise(argv):
                if option == "-m":
                    scripts += self._walker.find_module(value, search)
                elif option == "-c":
                    code = value
        if not scripts and not code:
            return []
        normal = [Path(os.path.normpath(script)) for script in scripts]
        return self._walker.reachable(normal, code=code, search=search)

    def _names(self, argv: Sequence[str], code: Iterable[Path]) -> set[str]:
        """Return the words that may be names of variables, in code and in shell text."""
        names = {name for word in argv for name in _SHELL_VARIABLE.findall(word)}
        for file in code:
            try:
                status = os.stat(file)  # noqa: PTH116 - once per file and step
                stamp = (status.st_mtime_ns, status.st_size)
                known = self._variables.get(file)
                if known is None or known[0] != stamp:
                    known = (stamp, set(_QUOTED_NAME.findall(_read_text(str(file)))))
                    self._variables[file] = known
            except OSError:
                continue
            names |= known[1]
        return names - _ALWAYS_ANOTHER

    def _contents(self, files: Iterable[Path]) -> dict[str, str]:
        return {self._name(file): self._content(str(file)) for file in files}

    def _name(self, file: Path) -> str:
        return str(file.relative_to(self._root) if file.is_relative_to(self._root) else file)

    def _content(self, path: str) -> str:
        """Return the digest of a file; read again only when its time or size changed."""
        try:
            status = os.stat(path)  # noqa: PTH116 - once per file and step
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._files.get(path)
            if known is None or known[0] != stamp:
                if status.st_size <= _CONTENT_UP_TO:
                    body = Path(path).read_bytes()
                    known = (stamp, hashlib.blake2b(body, digest_size=12).hexdigest())
                else:
                    known = (stamp, digest(stamp))
                self._files[path] = known
        except OSError:
            return "missing"
        return known[1]

    # Data --------------------------------------------------------------------------------------

    def _inputs(
        self, argv: Sequence[str], cwd: Path, config: Path
    ) -> Iterator[tuple[str, tuple[str, float]]]:
        """Yield the existing paths that a step is given, each with its state."""
        words = [word for argument in argv[1:] for word in _path_words(argument)]
        todo = [self._resolve(word, cwd) for word in words]
        todo += [self._resolve(word, self._root) for word in self._mentioned(str(config))]
        seen: set[str] = set()
        while todo:
            path = todo.pop()
            if not path or path in seen:
                continue
            seen.add(path)
            if path.endswith((".yml", ".yaml")):
                beside = Path(path).parent
                for word in self._mentioned(path):
                    todo += [self._resolve(word, base) for base in (cwd, beside)]
            if not path.endswith(".py"):
                yield path, self._state(path)

    def _resolve(self, word: str, base: Path) -> str:
        """Return the absolute path of an input, or an empty text for anything else."""
        path = os.path.normpath(os.path.join(base, word))  # noqa: PTH118 - once per argument
        if path.startswith(("/dev/", "/proc/", "/sys/")) or not os.path.exists(path):  # noqa: PTH110
            return ""
        inside = path + "/"
        if path == "/" or f"{self._root}/".startswith(inside):
            return ""  # the repo itself, or a folder above it
        for output in self._outputs:
            if path == output or path.startswith(output + "/") or output.startswith(inside):
                return ""
        return path

    def _mentioned(self, file: str) -> list[str]:
        """Return the words of a text file that look like paths."""
        try:
            status = os.stat(file)  # noqa: PTH116 - once per file and step
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._mentions.get(file)
            if known is None or known[0] != stamp:
                text = "" if status.st_size > _CONTENT_UP_TO else _read_text(file)
                words = (word for word in _PATH_BREAKS.split(text) if "/" in word.strip("/"))
                known = (stamp, list(dict.fromkeys(words)))
                self._mentions[file] = known
        except OSError:
            return []
        return known[1]

    def _state(self, path: str) -> tuple[str, float]:
        """Return the digest of a file or folder, and when it last changed."""
        try:
            if not os.path.isdir(path):  # noqa: PTH112 - once per argument
                return self._content(path), os.stat(path).st_mtime  # noqa: PTH116
            return self._folders.get(path) or self._walk(path)
        except OSError:
            return "missing", 0.0

    def _walk(self, folder: str) -> tuple[str, float]:
        total = hashlib.blake2b(digest_size=12)
        newest, count = 0.0, 0
        for name, status in _entries(folder, set()):
            total.update(
                f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode("utf-8", "replace")
            )
            newest = max(newest, status.st_mtime)
            count += 1
        state = (total.hexdigest(), newest)
        if count > _LARGE_FOLDER:
            self._folders[folder] = state  # a data set: looked at once per run
        return state

    # Programs ----------------------------------------------------------------------------------

    def _program(self, name: str, env: Mapping[str, str]) -> dict[str, str]:
        path = shutil.which(name, path=env.get("PATH")) or name
        known = self._programs.get(path)
        if known is None:
            known = {"program": path, "program's content": self._content(os.path.realpath(path))}
            if Path(name).name.startswith(("python", "pypy")):
                known |= _packages(path)
            self._programs[path] = known
        return known


def _path_words(argument: str) -> set[str]:
    """Return an argument, and its value when it is written ``--option=value``."""
    return {argument, argument.rpartition("=")[2]} - {""}


def _read_text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8", errors="replace")


def _entries(folder: str, seen: set[tuple[int, int]]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield everything below a folder in a fixed order; follows links, each folder once."""
    status = os.stat(folder)  # noqa: PTH116 - thousands of files
    if (status.st_dev, status.st_ino) in seen:
        return
    seen.add((status.st_dev, status.st_ino))
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name in _NO_DATA:
            continue
        try:
            yield entry.path, entry.stat()
            is_folder = entry.is_dir()
        except OSError:
            continue  # a broken link, or gone meanwhile
        if is_folder:
            yield from _entries(entry.path, seen)


def _packages(python: str) -> dict[str, str]:
    """Return the version of an interpreter and of every package installed for it."""
    try:
        answer = subprocess.run(
            [python, "-c", _PROBE], capture_output=True, text=True, check=True, timeout=30
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return {}
    versions = {"python": answer[0]}
    for folder in answer[1:]:
        for info in sorted(Path(folder).glob("*-info")):
            name, _, version = info.name.rpartition(".")[0].partition("-")
            versions[name] = version
    return versions
