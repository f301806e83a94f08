"""What the state-and-shape suite asks of large models, and what it leaves out; without Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tipcheck.backends.server.state_names import CHECKS, LEFT_OUT
from tipcheck.backends.server.state_suite import ask_about_state
from tipcheck.backends.stages import Place, StageKind, stage_kinds
from tipcheck.cli.main import main

COSTLY = {"clone", "two threads"}
PER_SHAPE = {"shapes A, B, A", "batch 1", "two models"}
ROWS = {"equal rows", "permuted rows"}


class Runner:
    """Adds up rows; remembers the shapes it met, and may answer later rows with the first."""

    def __init__(self, *, stale: bool = False) -> None:
        self.shapes: list[tuple[int, ...]] = []
        self.clones = 0
        self.stale = stale

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        rows = feed["x"].astype(np.float32)
        self.shapes.append(rows.shape)
        sums = rows.sum(axis=1)
        if self.stale:
            sums += np.arange(len(sums), dtype=np.float32)
        return [np.zeros(2, np.float32), sums]

    def clone(self) -> Runner:
        self.clones += 1
        return self


def ask(
    folder: Path, runner: Runner, *, packs: bool = False, **request: Any
) -> dict[str, dict[str, Any]]:
    rows = np.random.default_rng(1).standard_normal((2, 5)).astype(np.float32)
    np.savez(folder / "x.npz", x=rows)
    kind = StageKind("onednn" if packs else "inference", lambda _: runner, packs=packs)
    place = Place(Path("model.json"), "", (), (), folder)
    said: list[dict[str, Any]] = []
    wanted = {"feed": str(folder / "x.npz"), "batched": ["x"], "companion": "m.json", **request}
    ask_about_state(kind, runner, place, wanted, lambda message: said.append(dict(message)))
    found = {message["check"]: message for message in said if "check" in message}
    found["rows"] = next((message for message in said if "row_outputs" in message), {})
    return found


def left_out(found: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name in CHECKS if found[name].get("why", "").startswith(LEFT_OUT)}


def test_of_a_small_model_everything_is_asked(tmp_path: Path) -> None:
    runner = Runner()
    found = ask(tmp_path, runner)
    assert left_out(found) == set()
    assert runner.clones
    assert {shape[0] for shape in runner.shapes} >= {1, 2, 3}
    assert found["rows"]["row_outputs"] == [1]


def test_of_a_large_model_only_what_copies_the_weights_is_left_out(tmp_path: Path) -> None:
    runner = Runner()
    found = ask(tmp_path, runner, large=True)
    assert left_out(found) == COSTLY
    assert runner.clones == 0
    assert {shape[0] for shape in runner.shapes} == {1, 2, 3}
    assert "--full asks all the same" in found["clone"]["why"]


def test_a_stage_that_packs_weights_per_shape_sees_one_shape(tmp_path: Path) -> None:
    runner = Runner()
    found = ask(tmp_path, runner, packs=True, large=True, row_outputs=[1])
    assert left_out(found) == COSTLY | PER_SHAPE
    assert {shape[0] for shape in runner.shapes} == {2}
    assert all(found[name]["worst"] == 0.0 for name in ROWS | {"run N"})


def test_rows_that_differ_are_seen_in_one_shape_too(tmp_path: Path) -> None:
    found = ask(tmp_path, Runner(stale=True), packs=True, large=True, row_outputs=[1])
    assert all(found[name]["worst"] > 0.1 for name in ROWS)
    found = ask(tmp_path, Runner(stale=True), large=True)
    assert all(found[name]["worst"] > 0.1 for name in ROWS)


def test_without_knowing_the_rows_nothing_is_claimed_about_them(tmp_path: Path) -> None:
    found = ask(tmp_path, Runner(), packs=True, large=True)
    assert left_out(found) == COSTLY | PER_SHAPE | ROWS
    found = ask(tmp_path, Runner(), packs=True, large=True, row_outputs=[])
    assert found["equal rows"]["why"] == "no output has a row per row of the inputs"


def test_the_stages_of_onednn_pack_and_no_other() -> None:
    packing = {name for name, kind in stage_kinds().items() if kind.packs}
    assert packing == {"onednn", "onednn_bf16", "onednn_int8"}


@pytest.mark.paddle
def test_what_was_not_asked_is_said_and_can_be_asked(
    export: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("running", "request"):
        monkeypatch.setattr(f"tipcheck.stage_ladder.{module}.LARGE", 10)
    monkeypatch.setattr("tipcheck.stage_ladder.running.REFEREE_LIMIT", 10)
    command = ["verify", str(export), "--stages", "executor,inference,onednn", "--workers", "1"]
    assert main(command) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "NOT ASKED inference: clone, two threads: it takes another copy" in shown
    assert "NOT ASKED onednn: shapes A, B, A, batch 1, two models, clone, two threads:" in shown
    assert "6 of 8 asked, all hold" in shown
    assert "3 of 8 asked, all hold" in shown
    assert "none: in float64 so large a model takes too much memory; --full runs it" in shown
    assert "batch 3" not in shown
    assert main([*command, "--full"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "NOT ASKED" not in shown
    assert shown.count("8 of 8 asked, all hold") == 2
    assert "referee: the export in float64" in shown
    assert "normal, batch 3" in shown
