"""The house keeps its shape: every room says what it is for, and no module outgrows one idea."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import tipcheck

PACKAGE = Path(tipcheck.__file__).parent
ROOMS = (
    "config_plans",
    "step_runner",
    "backends",
    "compare",
    "stage_ladder",
    "blame",
    "report",
    "quant",
    "cli",
)
MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_comes_in_and_goes_out(room: str) -> None:
    told = importlib.import_module(f"tipcheck.{room}").__doc__ or ""
    for part in ("Comes in:", "Goes out:", "May import:"):
        assert part in told


def test_there_are_no_other_rooms() -> None:
    found = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert found == set(ROOMS)


@pytest.mark.parametrize(
    "module", MODULES, ids=[str(path.relative_to(PACKAGE)) for path in MODULES]
)
def test_a_module_is_one_idea(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= 400
    drawers = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
    assert module.stem not in drawers
