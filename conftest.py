"""Runs the code blocks of README.md, README.zh-CN.md and docs/ as tests.

- ``python`` blocks are executed, one after the other, in one namespace per document.
- ``console`` blocks are typed: every line after ``$ `` runs in bash in a fresh folder per document,
  and what follows has to be what it prints; ``...`` stands for anything. Blanks are not compared.
- ``sh`` blocks hold what cannot run inside a test (`make test` would never end): bash has to accept
  them, and every make target and file they name has to exist.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

if TYPE_CHECKING:
    from sybil import Example

# The same examples every time: a red run has to mean that something was changed.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# Started in the background by a script, a process ignores Ctrl-C, and so does all that it starts;
# tests that interrupt something would then wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What the user's terminal is like must not change what the tests see.
for _name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE"):
    os.environ.pop(_name, None)

ROOT = Path(__file__).parent
_TIME_LIMIT = 180


def _start_document(namespace: dict[str, Any]) -> None:
    folder = tempfile.TemporaryDirectory(prefix="tipcheck-docs-")
    namespace["_folder"] = folder
    namespace["_home"] = Path.cwd()
    os.chdir(folder.name)


def _end_document(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["_home"])
    namespace["_folder"].cleanup()


def _type_console(example: Example) -> str | None:
    """Run the commands of a console block; return how the output differs."""
    block = f"\n{example.parsed}"
    for part in block.split("\n$ ")[1:]:
        command, _, expected = part.partition("\n")
        ran = subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            text=True,
            timeout=_TIME_LIMIT,
            check=False,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        )
        printed = ran.stdout + ran.stderr
        if not _matches(expected, printed):
            return f"$ {command}\nexpected:\n{expected}\nprinted:\n{printed}"
    return None


def _matches(expected: str, printed: str) -> bool:
    pattern = r"\s+".join(
        ".*?".join(map(re.escape, word.split("..."))) for word in expected.split()
    )
    return re.fullmatch(rf"\s*{pattern}\s*", printed, re.DOTALL) is not None


def _check_shell(example: Example) -> str | None:
    """Check a block that is not run: its syntax, its make targets, its files."""
    subprocess.run(["bash", "-n", "-c", str(example.parsed)], check=True, timeout=_TIME_LIMIT)
    for line in str(example.parsed).splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["make"]:
            subprocess.run(
                ["make", "-n", *words[1:]],
                cwd=ROOT,
                check=True,
                timeout=_TIME_LIMIT,
                stdout=subprocess.DEVNULL,
            )
        if words[:1] == ["bash"] and not (ROOT / words[1]).exists():
            return f"{words[1]} does not exist"
    return None


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=0),
        CodeBlockParser(language="console", evaluator=_type_console),
        CodeBlockParser(language="sh", evaluator=_check_shell),
    ],
    patterns=["README*.md", "docs/*.md", "docs/*/*.md", "docs/*/*/*.md", "CONTRIBUTING.md"],
    setup=_start_document,
    teardown=_end_document,
).pytest()
