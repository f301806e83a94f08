"""What doctor concludes from what it finds, and what it finds on this machine for real."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tipcheck import wire
from tipcheck.backends.catalogue import RUN_MODES, STAGES, Need, Way
from tipcheck.backends.doctor import examine
from tipcheck.backends.doctor.diagnosis import Cpu, Diagnosis, PaddleBuild, WayStatus
from tipcheck.backends.isolation import WorkerEnd
from tipcheck.cli.main import main
from tipcheck.report.diagnosis import show_diagnosis
from tipcheck.report.terminal import terminal

CPU_BUILD = PaddleBuild("3.3.1", "abc", "", "", (), "works", works=True)
GPU_BUILD = PaddleBuild("3.3.1", "abc", "12.6", "10.5", ("H200",), "works", works=True)
NEW_CPU = Cpu("new", 2, dict.fromkeys(examine._FEATURES, True))
OLD_CPU = Cpu("old", 2, dict.fromkeys(examine._FEATURES, False))
ALL_PACKAGES: dict[str, str | None] = dict.fromkeys(examine._PACKAGES, "1.0")


def way(name: str) -> Way:
    return next(item for item in STAGES if item.name == name)


class TestNeeds:
    def test_nothing_is_missing_on_a_full_machine(self) -> None:
        assert list(examine._unmet(ALL_PACKAGES, NEW_CPU, GPU_BUILD)) == []

    def test_a_cpu_build_lacks_the_gpu_in_every_form(self) -> None:
        unmet = set(examine._unmet(ALL_PACKAGES, NEW_CPU, CPU_BUILD))
        assert unmet == {Need.CUDA_BUILD, Need.GPU, Need.TENSORRT_BUILD}

    def test_an_old_cpu_lacks_bfloat16(self) -> None:
        assert list(examine._unmet(ALL_PACKAGES, OLD_CPU, GPU_BUILD)) == [Need.AVX512]

    def test_packages_that_are_not_installed_are_lacking(self) -> None:
        packages = ALL_PACKAGES | {"openvino": None, "paddle2onnx": None}
        unmet = set(examine._unmet(packages, NEW_CPU, GPU_BUILD))
        assert unmet == {Need.OPENVINO, Need.PADDLE2ONNX}


class TestStatus:
    def test_a_lack_comes_with_the_reason_and_the_remedy(self) -> None:
        status = examine._status(way("openvino"), {Need.OPENVINO}, {}, "")
        assert not status.available
        assert status.because == "OpenVINO is not installed"
        assert "pip install openvino" in status.get

    def test_paddle_that_dies_is_not_called_missing(self) -> None:
        status = examine._status(way("eager"), {Need.PADDLE}, {}, "it died on SIGILL")
        assert status.because == "it died on SIGILL"

    @pytest.mark.parametrize(
        ("problem", "get"),
        [
            ("libgomp.so.1: cannot open shared object file", "apt-get install libgomp1"),
            ("libfoo.so.3: cannot open shared object", "install the system library libfoo.so.3"),
            ("died on SIGILL", "pip install 'paddlepaddle>=3.2' 'numpy<2.4' setuptools"),
        ],
    )
    def test_paddle_that_does_not_start_gets_the_remedy_for_its_cause(
        self, problem: str, get: str
    ) -> None:
        assert examine._status(way("eager"), {Need.PADDLE}, {}, problem).get == get

    def test_formats_are_those_that_ran(self) -> None:
        tried = {"json": {"onednn": ""}, "pdmodel": {"onednn": "boom"}}
        status = examine._status(way("onednn"), set(), tried, "")
        assert status.available
        assert status.formats == ("json",)
        assert status.how == "ran a small model; .pdmodel: boom"

    def test_what_failed_in_every_format_is_not_here(self) -> None:
        tried = {"json": {"onednn": "boom"}, "pdmodel": {"onednn": "boom"}}
        status = examine._status(way("onednn"), set(), tried, "")
        assert not status.available
        assert status.because == "boom"

    def test_the_layer_itself_has_no_format(self) -> None:
        tried = {"json": {"eager": ""}, "pdmodel": {"eager": ""}}
        assert examine._status(way("eager"), set(), tried, "").formats == ()

    def test_int8_says_that_it_was_not_tried(self) -> None:
        assert "not tried" in examine._status(way("onednn_int8"), set(), {}, "").how


class TestTrials:
    """A worker that dies loses the way it was at, and no other."""

    def end(self, *messages: dict[str, Any], signal: str | None = None) -> WorkerEnd:
        code = None if signal else 0
        return WorkerEnd(messages, code, signal, timed_out=False, last_lines=())

    def test_trials_go_on_after_a_crash(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[list[str]] = []

        def run_worker(_: str, request: dict[str, Any], **__: object) -> WorkerEnd:
            asked.append(request["ways"])
            if "b" not in request["ways"]:
                return self.end({"trying": "c"}, {"way": "c", "problem": ""})
            return self.end(
                {"trying": "a"}, {"way": "a", "problem": ""}, {"trying": "b"}, signal="SIGSEGV"
            )

        monkeypatch.setattr(examine, "run_worker", run_worker)
        found = examine._try_format(["a", "b", "c"], "json", 1.0)
        assert found == {"a": "", "b": "its process died on SIGSEGV", "c": ""}
        assert asked == [["a", "b", "c"], ["c"]]

    def test_a_trial_that_cannot_begin_is_not_repeated(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls: list[int] = []

        def run_worker(*_: object, **__: object) -> WorkerEnd:
            calls.append(1)
            return WorkerEnd((), 1, None, timed_out=False, last_lines=("ImportError: x",))

        monkeypatch.setattr(examine, "run_worker", run_worker)
        found = examine._try_format(["a", "b"], "json", 1.0)
        assert found == dict.fromkeys("ab", "its process exited with code 1 (ImportError: x)")
        assert len(calls) == 1


def test_cpu_features_are_read_from_the_system(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("model name\t: Fast 9000\nflags\t\t: avx2 avx512_bf16\n", encoding="utf-8")
    cpu = examine._cpu(info)
    assert cpu.model == "Fast 9000"
    assert {name for name, there in cpu.features.items() if there} == {"avx2", "avx512_bf16"}
    assert examine._cpu(tmp_path / "nowhere").features == OLD_CPU.features


@pytest.mark.parametrize(
    ("script", "gpus"),
    [("echo NVIDIA H200; echo", ("NVIDIA H200",)), ("exit 9", ()), (None, ())],
)
def test_gpus_are_those_the_driver_lists(
    script: str | None, gpus: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin" if script else str(tmp_path))
    if script:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    assert examine._driver_gpus() == gpus


def without_paddle(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in examine._PADDLE_PACKAGES:
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr("importlib.metadata.version", version)


def test_without_paddle_everything_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_paddle(monkeypatch)
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "PaddlePaddle is not installed" in shown
    assert "without a working Paddle no model can be run" in shown
    assert main(["doctor", "--json"]) == 1
    diagnosis = wire.loads(capsys.readouterr().out, Diagnosis)
    assert not any(status.available for status in diagnosis.stages)
    (get,) = {status.get for status in diagnosis.stages}
    assert get.startswith("pip install 'paddlepaddle>=")


def test_paddle_that_dies_on_import_is_told_from_one_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run_worker(*_: object, **__: object) -> WorkerEnd:
        return WorkerEnd((), None, "SIGILL", timed_out=False, last_lines=())

    monkeypatch.setattr(examine, "run_worker", run_worker)
    monkeypatch.setattr("importlib.metadata.version", lambda _: "1.0")
    diagnosis = examine.diagnose()
    assert diagnosis.paddle is None
    assert diagnosis.problem == "PaddlePaddle does not start: its process died on SIGILL"


def shown(diagnosis: Diagnosis) -> str:
    console = terminal()
    with console.capture() as capture:
        show_diagnosis(diagnosis, console)
    return capture.get()


DIAGNOSIS = Diagnosis(
    python="3.11.7",
    platform="Linux",
    packages={"numpy": "2.2.6", "openvino": None},
    cpu=NEW_CPU,
    gpus=("NVIDIA H200",),
    paddle=GPU_BUILD,
    problem="",
    stages=(
        WayStatus("gpu", "the GPU", available=True, formats=("json",), how="ran"),
        WayStatus("a", "first", available=False, because="no [gold]", get="buy it"),
        WayStatus("b", "second", available=False, because="no [gold]", get="buy it"),
    ),
    run_modes=(),
)


def test_report_names_build_devices_and_reasons() -> None:
    text = shown(DIAGNOSIS)
    for part in (
        "CUDA 12.6, TensorRT 10.5",
        "NVIDIA H200",
        "because no [gold]",
        "buy it",
        "1 of 3",
    ):
        assert part in text
    assert "openvino" not in text
    broken = replace(CPU_BUILD, check="it is broken", works=False)
    assert "it is broken" in shown(replace(DIAGNOSIS, paddle=broken))


@pytest.mark.paddle
def test_the_real_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    text = capsys.readouterr().out
    found = wire.loads(text, Diagnosis)
    assert found.paddle is not None
    assert found.paddle.works
    assert "successfully" in found.paddle.check
    assert [status.name for status in found.stages] == [item.name for item in STAGES]
    assert [status.name for status in found.run_modes] == [item.name for item in RUN_MODES]
    stages = {status.name: status for status in found.stages}
    for name in ("eager", "to_static", "jit_load", "executor", "inference", "inference_ir"):
        assert stages[name].available, stages[name]
    for status in (*found.stages, *found.run_modes):
        assert status.available or (status.because and status.get), status
    if not found.paddle.cuda:
        # A CPU build accepts enable_use_gpu without a word; that must not count.
        assert not any(stages[name].available for name in ("gpu", "gpu_fp16", "trt_fp32"))
    if found.packages["onnxruntime"] and found.packages["paddle2onnx"]:
        assert stages["onnxruntime"].available, stages["onnxruntime"]
    if found.packages["openvino"] and found.packages["paddle2onnx"]:
        assert stages["openvino"].available, stages["openvino"]
    assert json.loads(text)["schema"] == "tipcheck.diagnosis/1"
