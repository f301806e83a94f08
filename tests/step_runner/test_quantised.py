"""Exports that have to hold a quantised op, told by the files that they leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.step_runner.conftest import Chain
from tipcheck.config_plans import Step
from tipcheck.step_runner.outcome import Outcome
from tipcheck.step_runner.quantised import is_meant, why_not

PIR = '{"base_code":{"magic":"pir","version":4},"ops":[{"#":"1.matmul"},{"#":"1.%s"}]}'


@pytest.mark.parametrize(
    "word",
    [
        "pact_train_gpus_0/export", "train_pact_infer_python.txt", "ptq", "klquant_whole_infer",
        "quant_train", "x_PACT",
    ],
)  # fmt: skip
def test_words_that_mean_it(word: str) -> None:
    assert is_meant("norm", word)


@pytest.mark.parametrize("word", ["norm_train", "impact", "train_infer_python.txt", "captqx"])
def test_words_that_do_not(word: str) -> None:
    assert not is_meant(word)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("inference.json", PIR % "fake_quantize_dequantize_abs_max", ""),
        ("inference.json", PIR % "round", ""),
        ("inference.json", PIR % "relu", "the exported model has no quantised op (inference.json)"),
        ("inference.pdmodel", "\x0ffake_quantize_abs", ""),
        ("inference.pdmodel", "\x06matmul", "no quantised op (inference.pdmodel)"),
        ("model.onnx", "QuantizeLinear", ""),
        ("__model__", "\x05round", ""),
        ("labels.json", '{"quantize": 1}', "no exported model was found"),
        ("model.txt", "quantize", "no exported model was found"),
    ],
)
def test_what_a_file_says(tmp_path: Path, name: str, content: str, why: str) -> None:
    folder = tmp_path / "out" / "deep"
    folder.mkdir(parents=True)
    (folder / name).write_text(content)
    told = why_not(["python", "export.py", "--dir=out", "-x", "gone/there"], str(tmp_path), 0.0)
    assert why in told
    assert bool(why) == bool(told)


def test_a_model_of_earlier_is_none(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    model = tmp_path / "out" / "inference.json"
    model.write_text(PIR % "round")
    os.utime(model, (1000, 1000))
    assert why_not(["e", "out/model", "../x"], str(tmp_path), 2000.0).startswith("no exported")
    model.chmod(0)
    assert why_not(["e", "out"], str(tmp_path / "out" / ".."), 0.0) is not None


def test_a_pact_export_without_a_quantised_op_is_hollow(chain: Chain) -> None:
    def export(name: str, op: str) -> Step:
        code = f"mkdir -p {name}; printf '%s' '{PIR % op}' > {name}/inference.json"
        return chain.step(f"{name}/export", "", argv=("sh", "-c", code, name), stage="export")

    steps = [export("pact_train", "relu"), export("pact_good", "round"), export("norm", "relu")]
    ran, _ = chain.run(*steps)
    assert [result and result.outcome for result in ran.results] == [
        Outcome.HOLLOW, Outcome.PASSED, Outcome.PASSED,
    ]  # fmt: skip
    assert ran.results[0]
    assert "has no quantised op" in ran.results[0].reason
