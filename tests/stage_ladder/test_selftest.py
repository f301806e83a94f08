"""The self-test finds what is there, raises no alarm, and notices a ladder that has gone blind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tipcheck.backends.server.link import StageLink
from tipcheck.backends.server.selftest_model import FAULTS
from tipcheck.cli.main import main
from tipcheck.compare.verdict import Status
from tipcheck.stage_ladder import LadderResult
from tipcheck.stage_ladder import selftest as module

pytestmark = pytest.mark.paddle


def test_faults_are_found_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "faults.json"
    arguments = ["selftest", "--seed", "7", "--faults", "30", "--clean", "4", "--json", str(path)]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "PASS  20 of 20 faults at 10 noise floors or more found" in shown
    assert "0 alarms in 4 runs without a fault" in shown
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert len(raw["faults"]) == 30
    assert {fault["size"] for fault in raw["faults"]} == {1.0, 3.0, 10.0, 100.0, "inf", None}


def test_every_fault_changes_something(tmp_path: Path) -> None:
    """What changes no answer is no fault, and would count as one that was missed."""
    places = set()
    with StageLink(tmp_path) as link:
        for seed in range(12):
            room = tmp_path / str(seed)
            room.mkdir()
            end = link.run({"do": "selftest", "room": str(room), "seed": seed}, 120)
            faults = [message for message in end.messages if "fault" in message]
            assert len(faults) == len(FAULTS)
            for index, told in enumerate(faults):
                sizes = []
                for file in room.glob(f"fault_{index}_*.npz"):
                    with np.load(file) as added:
                        sizes += [float(np.abs(added[name]).max()) for name in added.files]
                assert max(sizes) > 1e-6, (seed, told)
                places.add((told["fault"], told["place"]))
    assert len({place for fault, place in places if fault == "bias dropped"}) == 3


def test_a_ladder_that_sees_nothing_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def blind(*_: object) -> object:
        return LadderResult("blind", Status.PASS, "all is well", ())

    monkeypatch.setattr(module._Record, "judged", blind)
    assert main(["selftest", "--faults", "6", "--clean", "1"]) == 1
    assert "missed:" in capsys.readouterr().out


def test_counts_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--faults", "0"]) == 2
    assert "--faults and --clean are counts" in capsys.readouterr().err
