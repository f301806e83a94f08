"""Two trainings compared: the first step and the first tensor that part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tipcheck.cli.main import main
from tipcheck.compare.verdict import Status
from tipcheck.stage_ladder.training import StepJudge

RANDOM = np.random.default_rng(3)
STEP: dict[str, Any] = {
    "loss": np.float32(1.5),
    "gradient of a.w": RANDOM.standard_normal((4, 3)).astype("float32"),
    "gradient of b.w": RANDOM.standard_normal(5).astype("float32"),
    "a.w": RANDOM.standard_normal((4, 3)).astype("float32"),
    "b.w": RANDOM.standard_normal(5).astype("float32"),
    "b.mean": RANDOM.standard_normal(5).astype("float32"),
}


def judged(tmp_path: Path, **changed: Any) -> Any:
    other = {name: np.array(value) for name, value in STEP.items()}
    for name, change in changed.items():
        key = name.replace("__", ".").replace("_of_", " of ")
        if change is None:
            del other[key]
        else:
            change(other[key])
    np.savez(tmp_path / "one.npz", **STEP)
    np.savez(tmp_path / "other.npz", **other)  # type: ignore[arg-type]
    judge = StepJudge(["a.w", "b.w"], 1e-4)
    return judge.judge(1, tmp_path / "one.npz", tmp_path / "other.npz")


def add(amount: float, at: Any = 0) -> Any:
    def change(array: Any) -> None:
        array.reshape(-1)[at] += amount

    return change


def test_what_is_equal_passes(tmp_path: Path) -> None:
    step = judged(tmp_path)
    assert (step.status, step.compared, step.share, step.closest) == (Status.PASS, 6, 1.0, 0.0)
    assert step.elements == sum(np.size(value) for value in STEP.values())


def test_the_first_is_the_one_the_others_follow_from(tmp_path: Path) -> None:
    step = judged(
        tmp_path, a__w=add(1), gradient_of_a__w=add(1), gradient_of_b__w=add(1), loss=add(1)
    )
    assert [one.name for one in step.parted] == [
        "loss",
        "gradient of b.w",
        "gradient of a.w",
        "a.w",
    ]
    assert step.loss == (1.5, 2.5)


def test_the_worst_element_is_named(tmp_path: Path) -> None:
    step = judged(tmp_path, a__w=add(2.0, 5))
    (one,) = step.parted
    assert one.worst is not None
    assert one.worst.index == (1, 2)
    assert one.reason == "1 of 12 elements differ"
    assert step.status is Status.FAIL


@pytest.mark.parametrize("name", ["a__w", "gradient_of_b__w", "b__mean"])
def test_what_is_missing_differs(tmp_path: Path, name: str) -> None:
    step = judged(tmp_path, **{name: None})
    assert [one.reason for one in step.parted] == ["to_static has none"]


def test_nan_on_one_side_differs(tmp_path: Path) -> None:
    assert judged(tmp_path, b__w=add(np.nan)).status is Status.FAIL


def test_a_parameter_that_moved_by_rounding_only_has_no_say(tmp_path: Path) -> None:
    """An optimizer makes a full step of a gradient that is nothing but noise."""
    before = STEP["gradient of b.w"].copy()
    STEP["gradient of b.w"][0] = 1e-9
    try:
        step = judged(tmp_path, b__w=add(0.1), gradient_of_b__w=add(-2e-9))
    finally:
        STEP["gradient of b.w"][:] = before
    assert step.status is Status.PASS
    assert step.share < 1.0


FACTORY = """
import numpy as np
import paddle


class Net(paddle.nn.Layer):
    def __init__(self, bug):
        super().__init__()
        self.bug = bug
        self.conv = paddle.nn.Conv2D(3, 4, 3)
        self.norm = paddle.nn.BatchNorm2D(4)
        self.drop = paddle.nn.Dropout(0.2)
        self.head = paddle.nn.Linear(4, 3)

    def forward(self, x):
        h = self.drop(paddle.nn.functional.relu(self.norm(self.conv(x))).mean([2, 3]))
        if self.bug and not paddle.in_dynamic_mode():
            h = h.detach()
        return self.head(h)


def make(bug=False, data=None):
    net = Net(bug)
    optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
    if data is None:
        data = [
            (np.random.rand(4, 3, 8, 8).astype("float32"), np.random.randint(0, 3, (4,)))
            for _ in range(3)
        ]
    loss = lambda model, x, y: paddle.nn.functional.cross_entropy(model(x), y)
    return net, optimizer, loss, data


def good():
    return make()


def bad():
    return make(True)


def empty():
    return make(data=[])


def other():
    rng = np.random.default_rng()
    return make(data=[(rng.random((4, 3, 8, 8), "float32"), np.zeros(4, "int64"))])


def three():
    return make()[:3]
"""


def trained(
    factory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *more: str
) -> tuple[int, Any]:
    (tmp_path / "train_it.py").write_text(FACTORY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "report.json"
    code = main(["verify", "--train", f"train_it.py:{factory}", "--json", str(report), *more])
    return code, json.loads(report.read_text("utf-8")) if report.exists() else None


@pytest.mark.paddle
def test_a_right_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = trained("good", tmp_path, monkeypatch, "--steps", "2")
    assert (code, report["status"], report["repeats"]) == (0, "PASS", True)
    assert [step["step"] for step in report["steps"]] == [1, 2]
    assert report["steps"][0]["compared"] == 15
    assert "agree over 2 steps" in capsys.readouterr().out


@pytest.mark.paddle
def test_a_gradient_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = trained("bad", tmp_path, monkeypatch)
    assert (code, report["status"]) == (1, "FAIL")
    assert "part in step 1, first in the gradient of norm.bias" in report["sentence"]
    assert "FAIL" in capsys.readouterr().out


@pytest.mark.paddle
@pytest.mark.parametrize(
    ("factory", "status", "words"),
    [
        ("empty", "FAIL", "no step was trained"),
        ("other", "SUSPECT", "does not give the same twice"),
    ],
)
def test_what_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factory: str, status: str, words: str
) -> None:
    code, report = trained(factory, tmp_path, monkeypatch)
    assert (code, report["status"]) == (1, status)
    assert words in report["sentence"]


@pytest.mark.paddle
def test_a_factory_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trained("three", tmp_path, monkeypatch)[0] == 2
    assert "has to return (model, optimizer, loss, data)" in capsys.readouterr().err
    assert main(["verify", "--train", "nothing"]) == 2
    assert main(["verify", "--train", "x:y", "--steps", "0"]) == 2
