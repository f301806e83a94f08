"""Which jobs may be forked from a process that has imported paddle, and from which one.

A forked job is only worth having if it does what a fresh process would do. Whatever is read while
the interpreter or the framework starts is fixed in the process that is forked, so it has to be the
same for the job; where that cannot be seen, the job gets a fresh process. The rules err on that
side: a job too many that starts afresh costs two seconds, one too few may give another result.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import warnings
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.step_runner.imports import ImportWalker
from tipcheck.step_runner.warm_names import matters

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tipcheck.step_runner.contract import Job

_PYTHON = re.compile(r"python(\d+(\.\d+)?)?")
_OTHER_WAYS = ("PYTHONDEVMODE", "PYTHONINSPECT", "PYTHONSAFEPATH", "PYTHONWARNINGS")
_LONGEST_COMMAND = 100_000
"""Bytes; a longer command line may be one that the system does not accept."""
_SETS_VARIABLES = re.compile(
    r"environ\s*\[(?P<key>[^\]]*)\]\s*=(?!=)"
    r"|environ\s*\.\s*(?:setdefault|pop)\s*\((?P<argument>[^,)]*)"
    r"|(?P<any>environ\s*\.\s*(?:update|clear|popitem)\b|environ\s*\|=|\bputenv\s*\(|\bdel\s+os\.environ)"
)
_LITERAL = re.compile(r"""\s*[rb]?["'](\w+)["']\s*""")


class Sets(Enum):
    """Whether code sets variables that are read while a framework is imported."""

    NEVER = "never"
    PERHAPS = "perhaps"
    """Only below a condition of a module: what comes before it are imports and definitions."""
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a process has to be like for a job to be forked from it.

    Attributes:
        interpreter: how the job starts its interpreter.
        program: absolute path of what that starts.
        folder: working directory, where that makes a difference.
        values: the variables that are read while an interpreter and a framework start.
    """

    interpreter: tuple[str, ...]
    program: str
    folder: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """A job that can be forked.

    Attributes:
        script: its script's absolute path.
        kind: what kind of process it can be forked from.
        may_set: whether its code sets, under a condition, variables that are read at the start. It
            is forked all the same, and gets a fresh process as soon as it really sets one.
    """

    script: Path
    kind: Kind
    may_set: bool = False


class Chooser:
    """Decides for one job after the other; remembers which files it has read."""

    def __init__(self) -> None:
        self._walkers: dict[str, ImportWalker] = {}
        self._verdicts: dict[Path, tuple[tuple[int, int], Sets]] = {}

    def choose(self, job: Job) -> Fit | str:
        """Return where a job can be forked from, or why it needs a process of its own."""
        why = _not_a_script(job)
        if why:
            return why
        program = _find(job)
        if not program:
            return "its interpreter is not found"
        wrapped = _is_script(program)
        if wrapped is None:
            return "its interpreter cannot be read"
        words = 2 if job.argv[1] == "-u" else 1
        script = Path(job.cwd, job.argv[words])
        if not script.is_file() or not os.access(script, os.R_OK):
            return "its script is not there"
        setter, may_set = self._sets_variables(script, job)
        if setter:
            return f"{setter} sets variables that are read when a framework is imported"
        relative = "/" in job.argv[0] and not job.argv[0].startswith("/")
        near = wrapped or relative or not _all_absolute(job.env.get("PYTHONPATH"))
        values = tuple(sorted((n, value) for n, value in job.env.items() if matters(n)))
        return Fit(
            script, Kind(job.argv[:words], program, job.cwd if near else "", values), may_set
        )

    def _sets_variables(self, script: Path, job: Job) -> tuple[str, bool]:
        """Return the first file of the job's code that sets such variables, and whether one may."""
        walker = self._walkers.setdefault(job.cwd, ImportWalker(Path(job.cwd)))
        folders = job.env.get("PYTHONPATH", "").split(":")
        search = [Path(job.cwd), *(Path(job.cwd, folder) for folder in folders if folder)]
        normal = Path(os.path.normpath(script))
        may_set = False
        for file in [normal, *walker.reachable([normal], search=search)]:
            sets = self._sets_in(file)
            if sets is Sets.ALWAYS:
                return file.name, True
            may_set = may_set or sets is Sets.PERHAPS
        return "", may_set

    def _sets_in(self, file: Path) -> Sets:
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._verdicts.get(file)
            if known is None or known[0] != stamp:
                known = (stamp, sets_variables(file.read_text("utf-8", "replace")))
                self._verdicts[file] = known
        except OSError:
            return Sets.ALWAYS
        return known[1]


def sets_variables(text: str) -> Sets:
    """Return whether a source text sets environment variables that a framework may read."""
    lines = []
    for match in _SETS_VARIABLES.finditer(text):
        name = _LITERAL.fullmatch(match["key"] or match["argument"] or "")
        if match["any"] or name is None or matters(name[1]):
            lines.append(text.count("\n", 0, match.start()) + 1)
    if not lines:
        return Sets.NEVER
    conditional = _conditional_lines(text)
    return Sets.PERHAPS if conditional.issuperset(lines) else Sets.ALWAYS


def _conditional_lines(text: str) -> set[int]:
    """Return the lines below an ``if`` of a module itself, not of a function or a class."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's code
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    lines: set[int] = set()
    for node in tree.body:
        if isinstance(node, ast.If) and not _is_main_guard(node.test):
            for part in [*node.body, *node.orelse]:
                lines.update(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return lines


def _is_main_guard(test: ast.expr) -> bool:
    return "__name__" in ast.unparse(test)


def shadows(script: Path, loaded: Collection[str]) -> str:
    """Return a module next to a script that it would import instead of one already loaded."""
    folder = Path(os.path.realpath(script)).parent
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name, dot, end = entry.name.partition(".")
                if name not in loaded:
                    continue
                package = not dot and os.path.exists(os.path.join(entry.path, "__init__.py"))  # noqa: PTH110, PTH118 - many entries
                if package or end.endswith(("py", "pyc", "so")):
                    return entry.name
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return ""


def _not_a_script(job: Job) -> str:
    words = [*job.argv[1:]]
    if words[:1] == ["-u"]:
        del words[0]
    if not words or not _PYTHON.fullmatch(os.path.basename(job.argv[0])):  # noqa: PTH119 - a word
        return "it is no Python script"
    if words[0].startswith("-") or not words[0].endswith(".py"):
        return "its interpreter gets more than a script"
    if any(job.env.get(name) for name in _OTHER_WAYS):
        return "its environment changes how an interpreter begins or ends"
    size = sum(len(os.fsencode(word)) for word in job.argv)
    if size > _LONGEST_COMMAND or any("\0" in word for word in (*job.argv, *_flat(job.env))):
        return "its command line may not be one that the system accepts"
    return ""


def _flat(env: Mapping[str, str]) -> list[str]:
    return [*env, *env.values()]


def _find(job: Job) -> str:
    """Return the path of the interpreter that the system would start, or an empty text."""
    program = job.argv[0]
    if "/" in program:
        path = os.path.join(job.cwd, program)  # noqa: PTH118 - ``..`` has to stay
        return path if os.access(path, os.X_OK) and os.path.isfile(path) else ""  # noqa: PTH113
    folders = job.env.get("PATH", os.defpath)
    return (shutil.which(program, path=folders) or "") if _all_absolute(folders) else ""


def _is_script(program: str) -> bool | None:
    """Whether an interpreter is a wrapper, which may choose another one in another folder."""
    try:
        with open(program, "rb") as file:  # noqa: PTH123 - a plain read
            return file.read(2) == b"#!"
    except OSError:
        return None


def _all_absolute(folders: str | None) -> bool:
    return not folders or all(folder.startswith("/") for folder in folders.split(":"))
