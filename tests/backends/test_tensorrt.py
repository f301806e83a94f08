"""What a stage of TensorRT asks of Paddle, in order, held by recorders: no GPU is needed here.

``tests/stage_ladder/test_gpu_stages.py`` runs the same stages where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tipcheck.backends import calibration, tensorrt
from tipcheck.backends.predictor import tensorrt_calls
from tipcheck.backends.stages import Place, UnusedError, stage_kinds
from tipcheck.errors import UsageError

GPU = "enable_use_gpu 256 0 PrecisionType.Float32"
PLAIN = ["enable_memory_optim False", GPU, "switch_ir_optim False"]


def flat(calls: Any) -> list[str]:
    return [" ".join(map(str, call)) for call in calls]


def engine(precision: str, *, calibrates: bool = False) -> str:
    return f"enable_tensorrt_engine {1 << 30} 1 3 PrecisionType.{precision} False {calibrates}"


class Machine:
    """Stands in for Paddle: remembers what was made, run and destroyed."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.configured: list[list[str]] = []

    def make(self, model: Path, stage: str, calls: Any) -> Predictor:
        self.configured.append(flat(calls))
        self.said.append(f"make {stage} {model.name}")
        return Predictor(self, stage)

    def run(self, predictor: Predictor, feed: Mapping[str, Any]) -> list[Any]:
        self.said.append(f"run {predictor.stage} {feed['x'].ravel()[0]:g}")
        return []


class Predictor:
    def __init__(self, machine: Machine, stage: str) -> None:
        self.machine, self.stage = machine, stage

    def __del__(self) -> None:
        self.machine.said.append(f"destroy {self.stage}")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    monkeypatch.setattr(tensorrt, "make_predictor", found.make)
    monkeypatch.setattr(tensorrt, "run_predictor", found.run)
    return found


def samples(folder: Path, *values: float) -> Path:
    folder.mkdir()
    for number, value in enumerate(values):
        np.savez(folder / f"{number}.npz", x=np.full((1, 4), value, np.float32))
    return folder


def place(folder: Path, **extra: Any) -> Place:
    model = folder / "model.json"
    model.write_text('{"program": {"regions": [{"blocks": [{"ops": []}]}]}}', encoding="utf-8")
    inputs = folder / "set_0.npz"
    np.savez(inputs, x=np.ones((2, 4), np.float32))
    return Place(model, "", (), (), folder, extra={"sets": [str(inputs), ""], **extra})


@pytest.fixture(autouse=True)
def _any_program_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain:
        quantised = False

    monkeypatch.setattr(tensorrt, "read_program", lambda _: Plain())


@pytest.mark.parametrize(
    ("stage", "precision"), [("trt_fp32", "Float32"), ("trt_fp16", "Half"), ("trt_int8", "Int8")]
)
def test_the_calls_of_a_stage_of_tensorrt(stage: str, precision: str) -> None:
    assert flat(tensorrt_calls(stage, shapes="s.pbtxt", cache="here")) == [
        GPU,
        "switch_ir_optim True",
        "set_optim_cache_dir here",
        engine(precision),
        "enable_tuned_tensorrt_dynamic_shape s.pbtxt True",
    ]


@pytest.mark.parametrize("stage", ["trt_fp32", "trt_fp16"])
def test_shapes_are_collected_before_the_engine_is_built(
    machine: Machine, tmp_path: Path, stage: str
) -> None:
    runner = stage_kinds()[stage].start(place(tmp_path))
    assert machine.said == [
        "make gpu model.json",
        "run gpu 1",
        "destroy gpu",
        f"make {stage} model.json",
    ]
    shapes = str(tmp_path / "shapes.pbtxt")
    assert machine.configured[0] == [*PLAIN, f"collect_shape_range_info {shapes}"]
    assert machine.configured[1][2] == f"set_optim_cache_dir {tmp_path}"
    assert machine.configured[1][-1] == f"enable_tuned_tensorrt_dynamic_shape {shapes} True"
    del runner


def test_int8_sees_the_samples_and_is_made_anew(machine: Machine, tmp_path: Path) -> None:
    """Paddle writes the scales when the first predictor goes, and takes a Config only once."""
    data = samples(tmp_path / "samples", 5, 7)
    here = place(tmp_path, calibration=str(data))
    runner = stage_kinds()["trt_int8"].start(here)
    assert machine.said == [
        "make gpu model.json",
        "run gpu 1",
        "destroy gpu",
        "make trt_int8 model.json",
        "run trt_int8 5",
        "run trt_int8 7",
        "destroy trt_int8",
        "make trt_int8 model.json",
    ]
    assert machine.configured[1] == machine.configured[2]
    assert machine.configured[1][3] == engine("Int8", calibrates=True)
    del runner


def test_a_quantised_model_brings_its_own_scales(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Quantised:
        quantised = True

    monkeypatch.setattr(tensorrt, "read_program", lambda _: Quantised())
    runner = stage_kinds()["trt_int8"].start(place(tmp_path))
    assert machine.configured[-1][3] == engine("Int8")
    assert machine.said.count("make trt_int8 model.json") == 1
    del runner


def test_without_data_int8_says_what_to_give(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(UnusedError, match=r"needs scales.*give --calibration FILE\.npz"):
        stage_kinds()["trt_int8"].start(place(tmp_path))
    assert machine.said == []


def test_samples_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no calibration data"):
        calibration.sample_files(tmp_path / "gone.npz")
    with pytest.raises(UsageError, match=r"holds no \.npz file to calibrate with"):
        calibration.sample_files(tmp_path)
    found = calibration.samples_in(samples(tmp_path / "two", 1, 2))
    assert [float(sample["x"][0, 0]) for sample in found] == [1, 2]
