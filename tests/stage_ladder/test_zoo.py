"""A part of the sweep over real models that is fast enough for every test run, and its list."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tipcheck.compare.verdict import Status
from tipcheck.stage_ladder import LadderResult, Rung
from tipcheck.stage_ladder.verifying import verify_target

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.delitem(sys.modules, "ladder_sweep", raising=False)
    return importlib.import_module("ladder_sweep")


@pytest.mark.paddle
@pytest.mark.parametrize("model", ["encoder", "whole_numbers"])
def test_no_difference_that_is_not_known(model: str, sweep: Any) -> None:
    known = json.loads(sweep.LIST.read_text(encoding="utf-8"))
    result = verify_target(f"{BENCH / 'ladder_zoo.py'}:{model}")
    assert sweep.unknown(model, result, known) == [], result.sentence
    assert result.compared >= 6


def test_the_page_says_what_the_list_says(sweep: Any, monkeypatch: pytest.MonkeyPatch,
                                          tmp_path: Path) -> None:  # fmt: skip
    page = tmp_path / "page.md"
    before = sweep.PAGE.read_text(encoding="utf-8")
    page.write_text(before, encoding="utf-8")
    monkeypatch.setattr(sweep, "PAGE", page)
    sweep.write_page(json.loads(sweep.LIST.read_text(encoding="utf-8")))
    assert page.read_text(encoding="utf-8") == before


def test_a_difference_that_is_not_listed_is_told(sweep: Any) -> None:
    result = LadderResult(
        "net",
        Status.FAIL,
        "",
        (Rung("onednn", "", Status.FAIL, "odd"), Rung("gpu", "", Status.PASS)),
    )
    assert sweep.unknown("net", result, []) == ["onednn: FAIL: odd"]
    listed = {"model": "net", "stages": ["onednn"], "status": "FAIL", "says": "od"}
    assert sweep.unknown("net", result, [listed]) == []
    assert sweep.unknown("net", result, [listed | {"says": "another"}])
