"""A paddle that is no more than its saving, so that ways of starting cost milliseconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tipcheck.backends.capture.command import Watch, environment

FAKE_API = """
_save_pre_hooks = []


def _register_save_pre_hook(hook):
    _save_pre_hooks.append(hook)


class StaticFunction:
    pass


def save(layer, path, input_spec=None, **configs):
    for hook in _save_pre_hooks:
        hook(layer, input_spec, configs)
    if layer == "broken":
        raise ValueError("cannot be saved")
    with open(path + ".json", "w") as file:
        file.write(str(layer))
"""


@pytest.fixture(scope="session")
def fake_paddle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a package ``paddle`` that can save and nothing else."""
    root = tmp_path_factory.mktemp("fake")
    jit = root / "paddle" / "jit"
    jit.mkdir(parents=True)
    (root / "paddle" / "__init__.py").write_text(
        "from . import jit\nfrom . import hapi  # the real one imports hundreds more\n", "utf-8"
    )
    (root / "paddle" / "hapi.py").write_text("", encoding="utf-8")
    (jit / "__init__.py").write_text("from .api import save\n", encoding="utf-8")
    (jit / "api.py").write_text(FAKE_API, encoding="utf-8")
    return root


def unmeasured() -> dict[str, str]:
    """Return this environment without what makes Python measure, and talk about, coverage."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


class Watched:
    """Runs commands with and without being watched."""

    def __init__(self, folder: Path, path: Path) -> None:
        self.folder = folder
        self.captures = folder / "captures"
        self.captures.mkdir()
        self.here = folder / "here"
        self.here.mkdir()
        kept = unmeasured()
        bin_folder = str(Path(sys.executable).parent)
        self.env = {**kept, "PYTHONPATH": str(path), "PATH": f"{bin_folder}:{kept['PATH']}"}

    def plain(self, *argv: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(argv, cwd=self.here, env=self.env, capture_output=True, check=False)

    def watched(self, *argv: str, **how: bool) -> subprocess.CompletedProcess[bytes]:
        env = environment(self.env, self.captures, Watch(limit=20, **how))  # type: ignore[arg-type]
        return subprocess.run(argv, cwd=self.here, env=env, capture_output=True, check=False)

    def saved(self) -> list[str]:
        notes = sorted(self.captures.glob("*/saved.json"))
        return [json.loads(note.read_text("utf-8"))["given"] for note in notes]


@pytest.fixture
def shell(tmp_path: Path, fake_paddle: Path) -> Watched:
    return Watched(tmp_path, fake_paddle)
