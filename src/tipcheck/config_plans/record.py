"""Finds out what a repo's own chain starts, by letting it run with stand-ins for every program.

For a repo that no profile describes. The bash script runs in a copy of the repo, in which all but
small files are empty and there are no outputs; its PATH leads to stand-ins for python, pip, wget
and all others that would do real work: they write down how they were called and succeed. What they
wrote becomes a plan. This is the only module of this room that starts a process.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.config_plans.find import root_of
from tipcheck.config_plans.plan import Plan, Step
from tipcheck.config_plans.state import VISIBLE
from tipcheck.config_plans.text import key_of, read, second_field
from tipcheck.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_STAND_INS = (
    "python", "python2", "python3", *(f"python3.{minor}" for minor in range(5, 16)),
    "pip", "pip2", "pip3", *(f"pip3.{minor}" for minor in range(5, 16)),
    "wget", "curl", "tar", "unzip", "git", "conda", "apt", "apt-get", "yum", "make", "cmake",
    "hadoop", "nvidia-smi", "xparl", "bash",
)  # fmt: skip
_REAL = (
    "awk", "basename", "cat", "cmp", "comm", "cut", "date", "diff", "dirname", "echo", "egrep",
    "env", "expr", "false", "fgrep", "find", "gawk", "getconf", "grep", "head", "hostname", "id",
    "join", "ls", "mkdir", "mktemp", "nl", "nproc", "paste", "printf", "pwd", "readlink",
    "realpath", "rev", "rmdir", "sed", "seq", "sh", "shuf", "sort", "stat", "tac", "tail", "tee",
    "test", "touch", "tr", "true", "uname", "uniq", "wc", "whoami", "xargs",
)  # fmt: skip
_DO_NOTHING = ("cp", "ln", "mv", "rm")
_WRITES_DOWN = """#!/bin/sh
{ printf '%s\\0' "$#" "$PWD" "${TIPCHECK_NAME:-${0##*/}}" "$@"; env -0; printf '\\0'; } \\
  >> "$TIPCHECK_CALLS"
"""
_RUNS_THE_REST = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do
  case $1 in {with_value}) shift ;; esac
  shift
done
{skip}
exec "$@"
"""
_WRAPPERS = {
    "timeout": ("-s|-k|--signal|--kill-after", "shift"),
    "nice": ("-n|--adjustment", ":"),
    "ionice": ("-c|-n|--class|--classdata", ":"),
    "stdbuf": ("-i|-o|-e|--input|--output|--error", ":"),
    "nohup": ("--", ":"),
    "setsid": ("--", ":"),
}
"""Programs that run another: options that take a value, and what stands before the other one."""
_NOT_FOUND = """command_not_found_handle() {
  TIPCHECK_NAME=$1; shift
  TIPCHECK_NAME=$TIPCHECK_NAME "$TIPCHECK_STAND_IN" "$@"
}
sleep() { :; }
"""
_OWN = frozenset({
    "PWD", "OLDPWD", "SHLVL", "_", "TIPCHECK_CALLS", "TIPCHECK_NAME", "TIPCHECK_STAND_IN",
    "BASH_ENV", "PATH", "HOME", "TMPDIR", "Count", "count", "LC_ALL",
})  # fmt: skip
_STAGES = (
    ("export", ("export", "to_static", "quant_post", "post_quant")),
    ("infer", ("infer", "predict")),
    ("eval", ("eval", "test-only", "val.py", "test.py")),
    ("train", ("train", "main.py")),
)
_BY_PATH = re.compile(r"/(?:[\w.+-]+/)+(?:python|pip|wget|curl|tar|conda|git)[\w.]*")
_LARGEST_FILE = 1024 * 1024
_DEEPEST = 8
_MOST_FILES, _MOST_BYTES = 20_000, 32 * 1024 * 1024
_OUTPUTS = frozenset({"output", "outputs", "log", "logs", "__pycache__", "node_modules", "venv"})


@dataclass(frozen=True, slots=True)
class Call:
    """How a stand-in was called.

    Attributes:
        program: its name, as it was called.
        arguments: those it was given.
        cwd: the folder it was started in.
        env: its environment.
    """

    program: str
    arguments: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]


def record(script: Path, config: Path, mode: str, *, seconds: float = 120) -> Plan:
    """Return what a chain script starts for a config in a mode.

    Args:
        script: the bash script.
        config: the config it is given.
        mode: the mode it is given.
        seconds: time limit for the script.

    Raises:
        UsageError: there is no such script, or it started nothing.
        ToolError: there is no bash, or the script did not end in time.
    """
    text = read(config)
    if not script.is_file():
        raise UsageError("no such script", where=str(script), hint="check the path")
    bash = shutil.which("bash")
    if bash is None:
        raise ToolError("there is no bash on this machine", hint="install bash")
    root = _root_of(script, config)
    names = [second_field(line.text) for line in text.lines[:8] if key_of(line.text) == "python"]
    with tempfile.TemporaryDirectory(prefix="tipcheck-record-") as folder:
        work = Path(folder).resolve() / "repo"
        _copy(root, work)
        inside = [_inside(path, root, work) for path in (script, config)]
        calls_file = Path(folder) / "calls"
        by_path = _named_by_path(work, [script, config])
        env = _environment(Path(folder), calls_file, names, by_path)
        errors = _run([bash, *map(str, inside), mode], work, env, seconds, script)
        calls = list(_calls(calls_file.read_bytes() if calls_file.exists() else b""))
        if not calls:
            raise UsageError(
                f"started nothing for mode {mode!r}; it said: {errors or 'nothing'}",
                where=str(script),
                hint="check that script, config and mode belong together",
            )
        steps = _steps(calls, work, root, env)
    model = [
        second_field(line.text) for line in text.lines[:8] if key_of(line.text) == "model_name"
    ]
    return Plan(str(config), mode, "recorded", model[0] if model else "", steps)


def _root_of(script: Path, config: Path) -> Path:
    """Return the folder the script starts in: its repo, else the one the user is in."""
    root, here = root_of(config), Path.cwd()
    is_known = (root / "test_tipc").is_dir() or any(
        part.startswith("test_tipc") for part in config.parts
    )
    if is_known or not all(_absolute(path).is_relative_to(here) for path in (script, config)):
        return root
    return here


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links


def _copy(root: Path, work: Path) -> None:
    """Copy a repo without its outputs: small files as they are, of others the name."""
    work.mkdir()
    files_left, bytes_left = _MOST_FILES, _MOST_BYTES
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        relative = here.relative_to(root)
        folders[:] = [
            name
            for name in sorted(folders)
            if not (name.startswith(".") or name in _OUTPUTS or len(relative.parts) >= _DEEPEST)
        ]
        (work / relative).mkdir(exist_ok=True)
        for name in sorted(files)[:files_left]:
            source, target = here / name, work / relative / name
            if not source.is_file():
                continue
            files_left -= 1
            size = source.stat().st_size
            if size <= min(_LARGEST_FILE, bytes_left):
                shutil.copyfile(source, target)
                bytes_left -= size
            else:
                target.touch()


def _inside(path: Path, root: Path, work: Path) -> Path:
    """Return a path below the copy, where the file is copied to if it is not there yet."""
    absolute = _absolute(path)
    if absolute.is_relative_to(root):
        relative = absolute.relative_to(root)
    else:
        relative = Path("test_tipc", absolute.name)
    target = work / relative
    if not target.exists() or absolute.stat().st_size != target.stat().st_size:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(absolute, target)
    return relative


def _named_by_path(work: Path, others: list[Path]) -> set[str]:
    """Return the programs that scripts and config name by a path, past any PATH."""
    found: set[str] = set()
    for path in [*sorted(work.rglob("*.sh")), *others]:
        found |= set(_BY_PATH.findall(path.read_text("utf-8", "replace")))
    return found


def _environment(
    folder: Path, calls: Path, pythons: list[str], by_path: set[str]
) -> dict[str, str]:
    programs = folder / "bin"
    programs.mkdir()
    named = {word for python in pythons for word in python.split()[:1] if "/" not in word}
    for name in {*_STAND_INS, *named}:
        _write_program(programs / name, _WRITES_DOWN)
    for name, (with_value, skip) in _WRAPPERS.items():
        _write_program(programs / name, _RUNS_THE_REST.format(with_value=with_value, skip=skip))
    for name in _DO_NOTHING:
        _write_program(programs / name, "#!/bin/sh\n")
    for name in _REAL:
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    startup = folder / "startup.sh"
    stand_in = programs / "python"
    functions = "".join(
        f'function {name} {{ TIPCHECK_NAME={name} "$TIPCHECK_STAND_IN" "$@"; }}\n'
        for name in sorted(by_path)
    )
    startup.write_text(_NOT_FOUND + functions, "utf-8")
    return {
        "PATH": str(programs),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C.UTF-8",
        "BASH_ENV": str(startup),
        "TIPCHECK_CALLS": str(calls),
        "TIPCHECK_STAND_IN": str(stand_in),
    }


def _write_program(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _run(
    command: list[str], work: Path, env: Mapping[str, str], seconds: float, script: Path
) -> str:
    """Run the script and return the last line it wrote to its error output."""
    process = subprocess.Popen(
        command,
        cwd=work,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise ToolError(f"did not end within {seconds:g} seconds", where=str(script)) from None
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


def _calls(data: bytes) -> Iterator[Call]:
    fields = iter(data.decode("utf-8", "replace").split("\0"))
    for count in fields:
        if not count:
            return
        cwd, program = next(fields), next(fields)
        arguments = tuple(next(fields) for _ in range(int(count)))
        env = {}
        while entry := next(fields):
            name, _, value = entry.partition("=")
            env[name] = value
        yield Call(program, arguments, cwd, env)


def _steps(calls: list[Call], work: Path, root: Path, base: Mapping[str, str]) -> tuple[Step, ...]:
    steps: list[Step] = []
    latest: dict[str, str] = {}
    since: list[str] = []
    for number, call in enumerate(calls, 1):
        argv = tuple(word.replace(str(work), str(root)) for word in (call.program, *call.arguments))
        stage = _stage(argv)
        stages = {"eval": ["train"], "export": ["train"], "infer": ["train", "export"]}
        needs = [latest[name] for name in ("setup", *stages.get(stage, ())) if name in latest]
        if stage == "setup":  # whatever it changes, it does so between what is before and after
            needs, since = [*needs, *since], []
        env: dict[str, str | None] = {
            name: value.replace(str(work), str(root))
            for name, value in sorted(call.env.items())
            if name not in _OWN and base.get(name) != value
        }
        visible = env.get(VISIBLE)
        step = Step(
            id=f"{number:03d}-{stage}",
            stage=stage,
            argv=argv,
            log=f"./test_tipc/output/recorded/{number:03d}_{stage}.log",
            env=env,
            cwd=os.path.relpath(call.cwd, work),
            needs=tuple(needs),
            gpus=tuple(visible.split(",")) if visible else (),
        )
        steps.append(step)
        latest[stage] = step.id
        if stage != "setup":
            since.append(step.id)
    return tuple(steps)


def _stage(argv: tuple[str, ...]) -> str:
    """Guess what a command is for from the script it starts."""
    if not Path(argv[0]).name.startswith("python") or argv[1:3] == ("-m", "pip"):
        return "setup"
    scripts = [word for word in argv[1:] if word.endswith(".py")]
    hints = [word for word in argv[1:] if word.startswith("--") and "=" not in word]
    text = " ".join([*(Path(script).name for script in scripts[:1]), *hints]).lower()
    for stage, words in _STAGES:
        if stage == "train" or any(word in text for word in words):
            return stage
    return "train"
