"""The bundled suite knows nothing of tipcheck: its exports verify, and it runs as if alone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.capture.conftest import unmeasured

SUITE = Path(__file__).parents[2] / "examples" / "export_suite"
_GLOG = re.compile(rb"^([IWE])\d{4} [\d:.]+\s+\d+ ", re.MULTILINE)

pytestmark = [pytest.mark.paddle, pytest.mark.slow]


@dataclass
class Run:
    """What one run gave."""

    folder: Path
    code: int
    stdout: bytes
    stderr: bytes
    report: dict[str, Any]

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }


def run_suite(folder: Path, *before: str, report: Path | None = None, code: int = 0) -> Run:
    shutil.copytree(SUITE, folder)
    configs = sorted(str(path.relative_to(folder)) for path in folder.glob("configs/*/*.yaml"))
    python = shutil.which("python", path=str(Path(sys.executable).parent)) or sys.executable
    ran = subprocess.run(
        [*before, python, "tools/export_model.py", "-c", *configs],
        cwd=folder,
        env=unmeasured(),
        capture_output=True,
        check=False,
    )
    assert ran.returncode == code, ran.stderr.decode()
    told = json.loads(report.read_text("utf-8")) if report else {}
    return Run(folder, ran.returncode, ran.stdout, ran.stderr, told)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_suite(tmp_path_factory.mktemp("alone") / "suite")


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("verified")
    options = ["--stages", "inference_ir", "--no-state", "--no-referee"]
    report = folder / "report.json"
    verify = [sys.executable, "-m", "tipcheck", "verify", *options, "--json", str(report), "--"]
    return run_suite(folder / "suite", *verify, report=report)


def test_every_family_verifies(verified: Run) -> None:
    exports = verified.report["exports"]
    wrong = [(one["name"], one["sentence"]) for one in exports if one["status"] != "PASS"]
    assert not wrong
    assert len(exports) == len(list(SUITE.glob("configs/*/*.yaml"))) >= 13
    for one in exports:
        stages = {rung["stage"]: rung for rung in one["ladder"]["rungs"]}
        assert set(stages) == {"eager", "inference_ir"}
        assert stages["inference_ir"]["bottom"]["elements"] > 0


def test_output_is_the_same_to_the_byte(alone: Run, verified: Run) -> None:
    assert verified.stdout == alone.stdout
    theirs, _, ours = verified.stderr.partition(b"tipcheck: ")
    assert _GLOG.sub(rb"\1 ", theirs) == _GLOG.sub(rb"\1 ", alone.stderr)
    assert ours.rstrip().endswith(b"exports verified")


def test_files_are_the_same_to_the_byte(alone: Run, verified: Run) -> None:
    mine, theirs = alone.files(), verified.files()
    assert theirs.keys() == mine.keys()
    assert [name for name in mine if mine[name] != theirs[name]] == []
    assert sum(name.endswith(".pdiparams") for name in mine) >= 13


def test_in_one_process_everything_is_put_back(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """What is done where a process cannot be forked."""
    chosen = ("gan/Generator", "static/Classifier", "seg/UNet")
    outputs = []
    for options in ((), ("--in-process", "--stages", "inference", "--no-state", "--no-referee")):
        folder = tmp_path_factory.mktemp("here") / "suite"
        shutil.copytree(SUITE, folder)
        script = [sys.executable, "tools/export_model.py", "-c"]
        command = [*script, *(f"configs/{name}.yaml" for name in chosen)]
        if options:
            command = [sys.executable, "-m", "tipcheck", "verify", *options, "--", *command]
        ran = subprocess.run(
            command, cwd=folder, env=unmeasured(), capture_output=True, check=False
        )
        assert ran.returncode == 0, ran.stderr.decode()
        outputs.append((ran.stdout, Run(folder, 0, b"", b"", {}).files()))
    assert outputs[0] == outputs[1]
    assert b"3 exports verified" in ran.stderr
