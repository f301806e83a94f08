"""The fixture ``parity``: what it costs those who do not use it, and what a failure says."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tipcheck.compare import compare_arrays
from tipcheck.compare.verdict import Status
from tipcheck.pytest_parity import failure_message
from tipcheck.stage_ladder.rung import Against, Flips, LadderResult, Rung

LOADED = (
    "import sys; import tipcheck.pytest_plugin; print(sorted(m for m in sys.modules if m in {}))"
)
TEST = """
import paddle


class Net(paddle.nn.Layer):
    def __init__(self, wrong):
        super().__init__()
        self.f = paddle.nn.Linear(8, 4)
        self.wrong = wrong

    def forward(self, x):
        y = self.f(x)
        return y * 1.5 if self.wrong and not paddle.in_dynamic_mode() else y


def spec():
    return [paddle.static.InputSpec([None, 8], "float32", "x")]


def test_right_without_a_name(parity):
    unnamed = [paddle.static.InputSpec([None, 8])]
    report = parity(Net(False), unnamed, stages=["eager", "inference_ir"])
    assert report.good


def test_wrong(parity):
    parity(Net(True), spec(), stages=["eager", "inference_ir"])
"""


def result() -> LadderResult:
    mine = [[0.5, -1.0], [2.0, 3.0]]
    verdict = compare_arrays({"output_0": mine}, {"output_0": [[0.5, -1.0], [2.0, 3.5]]}).tensors[0]
    against = Against(
        stage="eager",
        status=Status.FAIL,
        rule="gates",
        reason=verdict.reason,
        sqnr_db=17.5,
        where="output_0, normal",
        verdict=verdict,
        flips=Flips(2, 1, 1),
    )
    rungs = (
        Rung("eager", "", Status.PASS),
        Rung("inference_ir", "", Status.FAIL, "answers differ", bottom=against),
        Rung("onednn", "", Status.CRASH, "died on SIGSEGV", last_lines=("the last words",)),
    )
    return LadderResult("Net", Status.FAIL, "the answers change", rungs, "inference_ir")


def test_the_message_has_all_the_evidence() -> None:
    told = failure_message(result())
    for words in (
        "Net: the answers change",
        "inference_ir differs from eager (output_0, normal):",
        "Mismatched elements: 1 / 4 (25.0%)",
        "Greatest absolute difference: 0.5 (up to ",
        "at index (1, 1)",
        "Worst element (1, 1): 3.0 became 3.5",
        "Signal to noise: 17.5 dB",
        "Decisions that flip: 1 of 2",
        "onednn        CRASH        died on SIGSEGV",
    ):
        assert words in told


def test_a_crash_shows_its_last_words() -> None:
    whole = result()
    crashed = LadderResult("Net", Status.CRASH, "it died", whole.rungs[2:], "onednn")
    assert "  | the last words" in failure_message(crashed)


def test_it_imports_nothing_until_it_is_asked_for() -> None:
    watched = {"paddle", "numpy", "rich", "msgspec", "typing", "tipcheck.library"}
    code = LOADED.format(sorted(watched | {"pytest"}))
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"paddle", "numpy", "rich", "msgspec", "tipcheck.library"} & set(eval(told.stdout))  # noqa: S307


def test_pytest_finds_it_by_itself() -> None:
    found = [entry.value for entry in entry_points(group="pytest11") if entry.name == "tipcheck"]
    if not found:
        pytest.skip("this installation of tipcheck was made before there was a fixture")
    assert set(found) == {"tipcheck.pytest_plugin"}


@pytest.mark.paddle
def test_a_test_with_it(tmp_path: Path) -> None:
    (tmp_path / "test_export.py").write_text(TEST, encoding="utf-8")
    given = [] if "tipcheck" in [e.name for e in entry_points(group="pytest11")] else [
        "-p", "tipcheck.pytest_plugin"
    ]  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *given, "test_export.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "AssertionError: Net: the answers change" in ran.stdout
    assert "Mismatched elements: " in ran.stdout
    assert "Greatest relative difference: " in ran.stdout
