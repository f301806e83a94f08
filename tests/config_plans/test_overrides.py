"""A plan can have other values than the file, which stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tipcheck.config_plans.planner import make_plan
from tipcheck.errors import UsageError

from .configs import SUITE, TUTORIAL, put

if TYPE_CHECKING:
    from pathlib import Path

LITE = "lite_train_lite_infer"


def test_other_values(tmp_path: Path) -> None:
    path = put(tmp_path, "mine", TUTORIAL)
    values = {"python": "python3.12", "gpu_list": "-1", "--epochs": "7", "norm_train": "other.py",
              "8": "null", "weight": "best"}  # fmt: skip
    plan = make_plan(path, LITE, values=values)
    train, evaluation = plan.steps[:2]
    assert train.argv[:2] == ("python3.12", "other.py")
    assert train.argv[3:] == ("--epochs=7",)
    assert evaluation.argv[-1].endswith("/best")
    assert {step.gpus for step in plan.steps} == {()}
    assert path.read_text() == TUTORIAL


def test_a_value_that_names_its_modes(tmp_path: Path) -> None:
    path = put(tmp_path, "mine", TUTORIAL)
    plan = make_plan(path, LITE, values={"--epochs": "whole_train_whole_infer=7"})
    assert not any(argument.startswith("--epochs") for argument in plan.steps[0].argv)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"--device": "gpu"}, r"'--device' is the key of several lines: 5 \(.*\), 28 \("),
        ({"--nothing": "1"}, "no line has the key '--nothing'"),
        ({"null": "1"}, "no line has the key|several lines"),
        ({"python": "a\nb"}, "does not fit in one line"),
    ],
)
def test_values_that_fit_no_line(tmp_path: Path, values: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_plan(put(tmp_path, "mine", TUTORIAL), LITE, values=values)


def test_a_key_of_one_line_only(tmp_path: Path) -> None:
    path = put(tmp_path, "PaddleOCR", SUITE)
    plan = make_plan(path, LITE, values={"cast": "amp"}, as_bash=True)
    assert "Global.use_amp=True" in plan.steps[0].argv
