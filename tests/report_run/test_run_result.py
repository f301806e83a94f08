from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report_run.conftest import AUTOLOG, Make, result, step
from tipcheck import wire
from tipcheck.errors import ToolError
from tipcheck.report.run_autolog import parse_autolog
from tipcheck.report.run_files import write_files
from tipcheck.report.run_hints import HINTS, find_hint
from tipcheck.report.run_result import RunReport
from tipcheck.step_runner.outcome import Outcome


def test_a_report_comes_back_from_json(everything: RunReport) -> None:
    text = wire.dumps(everything)
    assert json.loads(text)["schema"] == "tipcheck.run/1"
    assert wire.loads(text, RunReport) == everything
    assert "tipcheck.run/1" in str(wire.json_schema(RunReport))


def test_what_a_report_says(everything: RunReport) -> None:
    assert not everything.good
    assert everything.counts == {
        "passed": 2, "skipped": 1, "failed": 1, "timed out": 1, "crashed": 1, "hollow": 1,
        "blocked": 1,
    }  # fmt: skip
    assert everything.started == "2023-11-14T22:13:20+00:00"
    steps = {each.step: each for each in everything.steps}
    assert steps["train"].command == "python3 train.py '--x=a b'"
    assert steps["bad"].hint.endswith("add --legacy-ir")
    assert steps["infer"].hint == ""
    assert steps["cpu"].autolog is not None
    assert steps["train"].autolog is None


def test_hollow_steps_are_good_when_allowed(make: Make) -> None:
    pair = (step("amp"), result("amp", Outcome.HOLLOW, "why"))
    assert not make(pair).good
    assert make(pair, allow_hollow=True).good


def test_a_step_without_an_end_is_not_good(make: Make) -> None:
    report = make((step("a"), None), interrupted_by="SIGINT")
    assert not report.good
    assert report.counts == {"not run": 1}


def test_autolog_is_read() -> None:
    log = parse_autolog("noise\n" + AUTOLOG + "more noise\n")
    assert log is not None
    assert (log.model_name, log.precision, log.runtime_device) == ("mobilenet", "fp32", "cpu")
    assert (log.preprocess_ms, log.inference_ms, log.postprocess_ms) == (0.5, 12.0, 0.1)
    assert (log.total_s, log.cpu_rss_mb, log.gpu_rss_mb, log.batch_size) == (
        0.3592, 2060.8398, None, 1.0,
    )  # fmt: skip
    assert log.values["OS_version"] == "Debian 12"
    assert log.values["input_shape"] == "dynamic"


def test_a_log_without_measurements_has_none() -> None:
    assert parse_autolog("") is None
    assert parse_autolog("[2026/11/18 08:06:45] root INFO: x: 1\nepoch 1") is None


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("cannot start python3.7: command not found", "--python"),
        ("pyenv: python3.7: command not found", "--python"),
        ("cannot start nvidia-smi: command not found", "install nvidia-smi"),
        ("ValueError: x/inference.pdmodel does not exist. not exist", "--legacy-ir"),
        ("Cannot open file ./out/inference.pdmodel, please confirm", "--legacy-ir"),
        ("PaddlePaddle is not compiled with CUDA", "--device cpu"),
        ("no CUDA-capable device is detected", "--device cpu"),
        ("ResourceExhaustedError: Out of memory error on GPU 0", "smaller batch"),
        ("died on SIGKILL (often the system's out-of-memory killer)", "--jobs 1"),
        ("ModuleNotFoundError: No module named 'paddleslim.dygraph'", "provides paddleslim.dyg"),
        ("train.py: error: unrecognized arguments: --data-path=x", "--data-path=x"),
        ("OSError: [Errno 28] No space left on device", "make room"),
        ("ended after its time limit of 3 s", "--timeout"),
        ("FileNotFoundError: [Errno 2] No such file or directory: './lite_data/x'", "lite_data/x"),
        ("python: can't open file '/repo/train.py': [Errno 2]", "/repo/train.py"),
        ("cannot enter its working directory /r/deploy: No such", "/r/deploy"),
        ("TypeError: only 0-dimensional arrays can be converted to Python scalars", "numpy<2.4"),
        ("AssertionError", ""),
    ],
)
def test_known_causes_have_a_hint(text: str, advice: str) -> None:
    hint = find_hint(text, "")
    assert advice in hint if advice else hint == ""
    assert find_hint("", f"line\n{text}\nline") == hint


def test_every_hint_can_be_filled() -> None:
    for hint in HINTS:
        assert hint.cause
        hint.advice.format("", "", "")


def test_files_that_cannot_be_written_are_named(everything: RunReport, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="cannot write: Not a directory"):
        write_files(everything, tmp_path, tmp_path / "file", style="2021")
