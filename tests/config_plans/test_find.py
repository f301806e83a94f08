"""The profile comes from the repo; without one, a config is read only where nothing else fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tipcheck.config_plans.find import profile_for, root_of
from tipcheck.config_plans.planner import make_plan
from tipcheck.config_plans.profile import load, names
from tipcheck.config_plans.text import read
from tipcheck.errors import UsageError

from .configs import KLQUANT, SUITE, TUTORIAL, change, put

if TYPE_CHECKING:
    from pathlib import Path


def found(path: Path, **options: object) -> str:
    return profile_for(read(path), **options).name  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("repo", "profile"),
    [
        ("PaddleOCR", "ocr"),
        ("paddleocr-2.7.0", "ocr"),
        ("PaddleClas-release2.5", "clas"),
        ("PaddleSeg", "seg"),
        ("PaddleSeg/contrib/MedicalSeg", "medicalseg"),
        ("PaddleNLP/tests", "nlp"),
        ("PARL", "parl"),
        ("models/tutorials/mobilenetv3_prod/Step6", "tutorial"),
    ],
)
def test_the_name_of_the_repo_decides(tmp_path: Path, repo: str, profile: str) -> None:
    assert found(put(tmp_path, repo, SUITE), as_bash=True) == profile


@pytest.mark.parametrize("repo", ["PaddleSeg/contrib/Other", "PaddleOCR/docs", "MyPaddleOCR"])
def test_a_folder_inside_a_repo_is_another_chain(tmp_path: Path, repo: str) -> None:
    with pytest.raises(UsageError, match="nothing around the config says"):
        found(put(tmp_path, repo, SUITE), as_bash=True)


def test_supplements_belong_to_the_chain_above_them(tmp_path: Path) -> None:
    path = put(tmp_path, "PaddleOCR/test_tipc/supplementary", SUITE)
    assert root_of(path) == tmp_path / "PaddleOCR"
    assert found(path) == "ocr"
    nested = put(tmp_path, "test_tipc/work", SUITE)
    (tmp_path / "test_tipc" / "work" / ".git").mkdir()
    assert root_of(nested) == tmp_path / "test_tipc" / "work"


def test_files_that_only_one_repo_has_decide(tmp_path: Path) -> None:
    path = put(tmp_path, "work", SUITE)
    (tmp_path / "work" / "ppocr").mkdir()
    assert found(path) == "ocr"
    other = put(tmp_path, "both", SUITE)
    (tmp_path / "both" / "ppocr").mkdir()
    (tmp_path / "both" / "ppcls").mkdir()
    with pytest.raises(UsageError, match=r"several profiles: clas: .*; ocr: "):
        found(other)


def test_the_script_of_the_repo_decides(tmp_path: Path) -> None:
    path = put(tmp_path, "paper", TUTORIAL)
    script = tmp_path / "paper" / "test_tipc" / "test_train_inference_python.sh"
    script.write_text('awk NR==32\nLOG_PATH="./log/${model_name}/${MODE}"\n')
    with pytest.raises(UsageError, match="no profile describes"):
        found(path)
    script.write_text("\n".join(load("tutorial-log").evidence.script))
    assert found(path, as_bash=True) == "tutorial-log"
    for text, replacement in (
        ("${save_log}/${train_model_name}", "${save_log}${train_model_name}"),
        ("--ips=${ips}", "--nodes=${ips}"),
    ):
        whole = script.read_text()
        script.write_text(whole.replace(text, replacement))
        with pytest.raises(UsageError, match="no profile describes"):
            found(path, as_bash=True)
        script.write_text(whole)
    script.write_text("\n".join(load("tutorial-oldest").evidence.script))
    assert found(path, as_bash=True) == "tutorial-oldest"
    other = put(tmp_path, "other", TUTORIAL)
    (other.parents[2] / "test_train_inference_python.sh").write_text("python $1\n")
    with pytest.raises(UsageError, match="no profile describes") as error:
        found(other)
    assert "tipcheck record" in error.value.hint
    thin = put(tmp_path, "thin", TUTORIAL)
    (thin.parents[2] / "test_train_inference_python.sh").write_text("tipcheck run $1\n")
    assert found(thin, as_bash=True) == found(thin) == "tutorial"


def test_without_evidence(tmp_path: Path) -> None:
    tutorial = put(tmp_path, "mine", TUTORIAL)
    assert found(tutorial) == "tutorial"
    with pytest.raises(UsageError, match="nothing around the config says") as error:
        found(tutorial, as_bash=True)
    assert "tutorial, tutorial-log" in error.value.hint
    suite = put(tmp_path, "mine", SUITE, "suite.txt")
    with pytest.raises(UsageError, match="several profiles"):
        found(suite)
    keys = {5: "Global.use_gpu:1", 8: "Global.save_model_dir:x", 28: "Global.save_inference_dir:"}
    like_ocr = put(tmp_path, "mine", change(SUITE, keys), "ocr.txt")
    with pytest.raises(UsageError, match="profile ocr") as error:
        found(like_ocr)
    assert "clas" not in str(error.value)


def test_a_profile_by_name(tmp_path: Path) -> None:
    path = put(tmp_path, "PaddleOCR", SUITE)
    assert found(path, name="clas") == "clas"
    with pytest.raises(UsageError, match="no profile is named 'x'") as error:
        found(path, name="x")
    assert "tutorial" in error.value.hint


def test_nothing_fits(tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("====a====\nmodel_name:x\nb:1\n")
    with pytest.raises(UsageError, match="no profile fits; the nearest") as error:
        found(path)
    assert error.value.where.endswith(":3")


def test_the_root_is_the_folder_of_test_tipc(tmp_path: Path) -> None:
    assert root_of(put(tmp_path, "a/tests", SUITE)) == tmp_path / "a" / "tests"
    assert root_of(tmp_path / "b" / "test_tipc_v110" / "c.txt") == tmp_path / "b"
    assert root_of(tmp_path / "c.txt") == tmp_path


def test_every_profile_is_complete() -> None:
    for name in names():
        profile = load(name)
        assert profile.about.endswith("."), name
        assert profile.flow, name
        assert sorted(profile.lines) == list(range(1, len(profile.lines) + 1)), name
        assert all(spec.example for spec in profile.lines.values()), name
        assert len(profile.by_name) == len(profile.lines), name


def test_a_shifted_config_of_a_layout_found_anywhere_is_told_from_those_of_its_repo(
    tmp_path: Path,
) -> None:
    good = put(tmp_path, "PaddleOCR", KLQUANT)
    assert make_plan(good, "whole_infer").profile == "klquant"
    bad = put(tmp_path, "PaddleOCR", change(KLQUANT, {12: None}), "bad.txt")
    with pytest.raises(UsageError, match=r"--cpu_threads:6.*missing here") as error:
        make_plan(bad, "whole_infer")
    assert error.value.where == f"{bad}:12"


def test_a_config_of_no_layout_is_refused_in_a_repo_that_is_known(tmp_path: Path) -> None:
    lines = ["==x==", "model_name:a", "python:python3", *(f"k{n}:v" for n in range(30))]
    path = put(tmp_path, "PaddleOCR", "\n".join(lines))
    with pytest.raises(UsageError, match="profile ocr"):
        make_plan(path, "lite_train_lite_infer")
