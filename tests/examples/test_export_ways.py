"""The programs of examples/export_ways, and the page of the guide that is written from them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
WAYS = ROOT / "examples" / "export_ways"
PROGRAMS = sorted(path.stem for path in WAYS.glob("*.py") if path.stem not in ("run_all", "show"))
SOT = "RuntimeError: SOT is only supported when running in PIR mode"
OLDER_FAILS = {
    "decorator": SOT,
    "convert_layer": SOT,
    "inferred_spec": SOT,
    "control_flow": "argument (position 1) must be Value, but got Variable",
}

pytestmark = [pytest.mark.paddle, pytest.mark.slow]
Runs = dict[str, tuple[bool, str, str]]


def page_maker() -> Any:
    found = importlib.util.spec_from_file_location(
        "make_exporting", ROOT / "docs/make_exporting.py"
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    made: Runs = page_maker().run_programs(tmp_path_factory.mktemp("runs"), older=False)
    return made


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    made: Runs = page_maker().run_programs(tmp_path_factory.mktemp("older"), older=True)
    return made


def test_every_program_runs_through(runs: Runs) -> None:
    assert sorted(runs) == PROGRAMS
    assert {name: ending for name, (good, _, ending) in runs.items() if not good} == {}


@pytest.mark.parametrize("page", ["guide/exporting.md", "zh/guide/exporting.md"])
def test_the_page_shows_the_programs_and_what_they_print(
    page: str, runs: Runs, older: Runs
) -> None:
    maker = page_maker()
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- program: (\w+) -->", text)) == PROGRAMS
    written = maker.write(text, runs, maker.table(older))
    assert written == text, "run `python docs/make_exporting.py`"


def test_the_older_graph_mode_refuses_four_and_says_why(older: Runs) -> None:
    assert sorted(older) == PROGRAMS
    failed = {name: ending for name, (good, _, ending) in older.items() if not good}
    assert sorted(failed) == sorted(OLDER_FAILS)
    for name, reason in OLDER_FAILS.items():
        assert reason in failed[name]


# What the page says in words, asked of what the programs printed.
@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("decorator", "files: net.json net.pdiparams"),
        ("convert_layer", "the same object: True"),
        ("three_steps", "jit.save returns None"),
        ("three_steps", "receiving the [1]dimension of Input(X) is [3]"),
        ("inferred_spec", "6 rows become [2, 30] and should become [3, 20]"),
        ("inferred_spec", "6 rows become [3, 20]"),
        ("make_spec", "InputSpec(shape=(-1, 784), dtype=paddle.float32, name=x"),
        ("decorator_with_spec", "`forward()` requires `y` arguments"),
        ("decorator_with_spec", "is conflict with the `input_spec`"),
        ("nested_inputs", "both: inputs ['y', 'x'] differ by 0.0"),
        ("nested_inputs", "wrong key: Dy2StKeyError: KeyError: 'bias'"),
        ("nested_inputs", "too short: IndexError: list index out of range"),
        ("other_arguments", "default: matmul add\n"),
        ("other_arguments", "True:    matmul add relu\n"),
        ("alternating", "steps whose losses differ: 0 of 10"),
        ("alternating", "graphs: 2"),
        ("control_flow", "if: if in the graph; 2 inputs differ by 0.0"),
        ("control_flow", "while: while in the graph; 2 inputs differ by 0.0"),
        ("several_functions", "files: net.another_func.json net.another_func.pdiparams net.json"),
        ("load_and_tune", "dropout after train(): does nothing"),
        ("wrong_calls", "no spec, never called: ValueError: No valid transformed program"),
        ("train_mode", "Dropout and BatchNorm, eval() forgotten: wrong by 0.0"),
        ("train_mode", "if self.training, eval() forgotten: wrong by 1.5"),
        ("train_mode", "if self.training, after eval(): wrong by 0.0"),
        ("side_effects", "exported: [1.0, 1.0, 1.0] the layer has counted 1"),
        ("side_effects", "as a graph: [1.0, 1.0, 1.0]"),
    ],
)
def test_a_program_shows_what_the_page_says(runs: Runs, program: str, line: str) -> None:
    assert line in runs[program][1]


def test_the_older_format_leaves_three_files(older: Runs) -> None:
    assert "net.pdiparams net.pdiparams.info net.pdmodel" in older["formats"][1]
    assert "dropout after train(): at work" in older["load_and_tune"][1]


def test_a_program_that_fails_is_noticed(tmp_path: Path) -> None:
    broken = tmp_path / "ways"
    broken.mkdir()
    for name in ("run_all", "show"):
        (broken / f"{name}.py").write_text((WAYS / f"{name}.py").read_text())
    (broken / "make_spec.py").write_text("print('begun')\nraise ValueError('on purpose')\n")
    (broken / "formats.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    done = subprocess.run(
        [sys.executable, broken / "run_all.py", "make_spec", "formats"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "== make_spec FAILED with status 1\nbegun\n" in done.stdout
    assert "== formats FAILED with status 247" in done.stdout
    assert "ValueError: on purpose" in done.stderr


def test_what_there_is_not_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, WAYS / "run_all.py", "nothing"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert "error: there is no nothing; there are decorator, " in done.stderr
