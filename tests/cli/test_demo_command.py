"""``tipcheck demo`` with the real Paddle, and when something is in its way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tipcheck.backends import StageOutputs
from tipcheck.cli import demo
from tipcheck.cli.main import main
from tipcheck.compare import compare_arrays
from tipcheck.report.terminal import terminal
from tipcheck.report.tour import Tour


@pytest.mark.paddle
def test_the_demo_compares_real_executions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "made" / "for it"
    assert main(["demo", "--output", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("PASS") >= 2
    arrays = {}
    for stage in ("eager", "inference", "onednn"):
        with np.load(folder / f"{stage}.npz") as outputs:
            arrays[stage] = outputs["output_0"]
        assert arrays[stage].shape == (4, 1000)
    assert np.sqrt(np.mean(np.square(arrays["eager"]))) > 1e-2  # a scale on which errors show
    assert not np.array_equal(arrays["onednn"], arrays["eager"])  # it really is another execution
    assert main(["compare", str(folder / "eager.npz"), str(folder / "onednn.npz")]) == 0


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["demo", "--output", str(tmp_path / "file" / "below")]) == 2
    assert "cannot make the folder" in capsys.readouterr().err


def stages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **values: float | None) -> None:
    """Replace the real runs by outputs of one number; None is a crash."""

    def run_stage(stage: str, _: Path) -> StageOutputs:
        value = values[stage]
        if value is None:
            return StageOutputs(stage, 0, (), "", signal="SIGSEGV")
        np.savez(tmp_path / stage, output_0=np.array([value], np.float32))
        return StageOutputs(stage, 1, ("output_0",), str(tmp_path / f"{stage}.npz"), 0.01)

    monkeypatch.setattr(demo, "_run_stage", run_stage)


@pytest.mark.parametrize(
    ("inference", "onednn", "onednn_bf16", "code"),
    [
        (1.0, 1.0, 1.0, 0),
        (1.0, 1.0, 1.01, 0),
        (1.0, 1.0, None, 0),
        (1.0, 1.01, 1.01, 1),
        (1.0, None, None, 1),
    ],
)
def test_only_float32_stages_decide(
    inference: float,
    onednn: float | None,
    onednn_bf16: float | None,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stages(
        monkeypatch,
        tmp_path,
        eager=1.0,
        inference=inference,
        onednn=onednn,
        onednn_bf16=onednn_bf16,
    )
    assert main(["demo", "--output", str(tmp_path)]) == code


def test_a_model_that_does_not_run_points_to_doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stages(monkeypatch, tmp_path, eager=None)
    assert main(["demo", "--output", str(tmp_path)]) == 3
    assert "tipcheck doctor" in capsys.readouterr().err


def test_a_worker_without_an_answer_is_no_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    outputs = demo._run_stage("eager", tmp_path)
    assert (outputs.archive, outputs.samples) == ("", 0)


def test_what_failed_is_pointed_at(tmp_path: Path) -> None:
    console = terminal()
    tour = Tour(tmp_path, console)
    one, other = (np.array([value], np.float32) for value in (1.0, 2.0))
    with console.capture() as capture:
        tour.compared(
            StageOutputs("onednn", 1, ("y",), "y.npz"), compare_arrays({"y": one}, {"y": other})
        )
        tour.compared(
            StageOutputs("onednn_bf16", 1, (), "y.npz"), compare_arrays({"y": one}, {"z": other})
        )
        tour.end()
    shown = capture.get()
    assert "FAIL" in shown
    assert "onednn.npz" in "".join(shown.split())
    assert "bfloat16 keeps 8 significant bits" in shown


@pytest.mark.parametrize("width", [80, 107, 108, 140])
def test_a_stage_is_one_line(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    one = {"y": np.ones(9, np.float32)}
    other = {"y": one["y"] + np.float32(1.234e-5)}
    Tour(tmp_path).compared(StageOutputs("onednn_bf16", 1, ("y",), ""), compare_arrays(one, other))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(" x rms")
