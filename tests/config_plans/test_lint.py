"""Each defect is found at its line, and a good config is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tipcheck.config_plans.lint import Findings, lint
from tipcheck.config_plans.planner import make_plan
from tipcheck.errors import UsageError

from .configs import SUITE, TUTORIAL, change, put

if TYPE_CHECKING:
    from pathlib import Path


def found(
    folder: Path, text: str | bytes, repo: str = "PaddleOCR"
) -> set[tuple[str, str, int | None]]:
    return {(f.level, f.rule, f.line) for f in lint(put(folder, repo, text))}


def test_a_good_config_has_no_finding(tmp_path: Path) -> None:
    assert found(tmp_path, SUITE) == set()


@pytest.mark.parametrize(
    ("lines", "finding"),
    [
        ({17: None}, ("error", "shifted", 17)),
        ({16: "# why\nnorm_train:a.py"}, ("error", "inserted-line", 16)),
        ({31: "quant_export: null"}, ("warning", "null-with-blank", 31)),
        ({31: "quant_export:null "}, ("warning", "null-with-blank", 31)),
        ({16: "norm_train:a.py "}, ("note", "trailing-blanks", 16)),
        ({7: "epoch:5"}, ("warning", "never-matches", 7)),
        ({7: "epoch: lite_train_lite_infer=5"}, ("warning", "never-matches", 7)),
        ({7: "epoch:lite_train_lite=5"}, ("warning", "unknown-mode", 7)),
        ({41: "--use_gpu:Ture"}, ("warning", "misspelt-flag", 41)),
        ({39: "infer_quant:Fasle"}, ("warning", "misspelt-flag", 39)),
        ({41: "--use_gpu:gpu|xpu"}, ("warning", "never-matches", 41)),
        ({41: "--use_gpu:xpu"}, ("error", "never-matches", 41)),
        ({10: "pretrained:https://x/y"}, ("warning", "value-cut-at-colon", 10)),
        ({13: "opt:-n"}, ("warning", "value-eaten", 13)),
        ({16: "norm_train:a.py $(rm x)"}, ("error", "shell-text", 16)),
        ({4: "gpu_list:a"}, ("error", "gpu-list", 4)),
        ({4: "gpu_list:x.x;0,1"}, ("warning", "gpu-list-by-length", 4)),
        ({4: "gpu_list:0,1,2,3,4,5,6,7,8"}, ("warning", "gpu-list-by-length", 4)),
        ({15: "trainer:other"}, ("note", "unknown-trainer", 15)),
        ({15: "trainer:pact_train"}, ("warning", "trainer-without-command", 17)),
        ({37: "infer_model:a|b"}, ("warning", "list-too-short", 38)),
        ({8: "save"}, ("note", "key-class", 8)),
        ({7: "##"}, ("warning", "key-class", 7)),
        ({40: "--lr:1"}, ("warning", "key-class", 40)),
        ({12: "--lr:1"}, ("warning", "key-class", 12)),
        ({17: "quant_export:null"}, ("note", "key-class", 17)),
        ({25: "eval:tools/eval.py"}, ("warning", "key-class", 25)),
        ({45: "--precision:fp32"}, ("warning", "key-class", 45)),
        ({13: "inference:tools/infer.py"}, ("warning", "key-class", 13)),
        ({43: None}, ("error", "shifted", 43)),
        ({44: "--batch:1|1"}, ("warning", "duplicate-command", None)),
        ({30: "norm_export:"}, ("error", "no-plan", 30)),
    ],
)
def test_a_defect_is_found_where_it_stands(
    tmp_path: Path, lines: dict[int, str | None], finding: tuple[str, str, int]
) -> None:
    problems = found(tmp_path, change(SUITE, lines))
    assert finding in problems


def test_text_that_is_no_good_file(tmp_path: Path) -> None:
    crlf = found(tmp_path, SUITE.replace("\n", "\r\n"))
    assert ("error", "crlf", 1) in crlf
    assert ("warning", "carriage-return", 3) in crlf
    assert "unknown-trainer" not in {rule for _, rule, _ in crlf}
    assert ("warning", "bom", 1) in found(tmp_path, "\ufeff" + SUITE)
    assert ("warning", "empty-line", 23) in found(tmp_path, change(SUITE, {22: "##\n"}))
    assert found(tmp_path, SUITE + "\n\n") == set()
    assert {(level, rule) for level, rule, _ in found(tmp_path, b"\0")} == {("error", "unreadable")}
    latin = change(SUITE, {2: "model_name:caf\xe9"}).encode("latin-1")
    assert found(tmp_path, latin) == {("error", "unreadable", 2)}


def test_a_file_that_ends_early(tmp_path: Path) -> None:
    text = "\n".join(SUITE.splitlines()[:23])
    assert ("warning", "file-ends-early", 23) in found(tmp_path, text)


def test_a_line_that_the_chain_never_passes_on(tmp_path: Path) -> None:
    problems = found(tmp_path, TUTORIAL, "mine")
    assert ("note", "line-not-passed-on", 11) in problems
    assert ("warning", "image-path-dropped", 31) in problems
    assert [rule for _, rule, _ in problems].count("log-overwritten") == 1
    assert "error" not in {level for level, _, _ in problems}
    (tmp_path / "mine" / "fit.py").write_text('p.add_argument("--data")')
    known = [f for f in lint(put(tmp_path, "mine", TUTORIAL, "b.txt")) if f.line == 11]
    assert [finding.message for finding in known] == [
        "bash never passes --data=./small on, and the script knows --data"
    ]
    assert ("note", "line-not-passed-on", 11) not in found(
        tmp_path, change(TUTORIAL, {11: "null:null"})
    )


def test_defects_of_the_chain_are_told_once(tmp_path: Path) -> None:
    text = change(SUITE, {9: "batch:8"})
    clas = [f for f in lint(put(tmp_path, "PaddleClas", text)) if f.rule == "epochs-lost"]
    assert [finding.line for finding in clas] == [7]


def test_text_for_a_shell_is_told_once(tmp_path: Path) -> None:
    text = change(SUITE, {16: "norm_train:a.py $(rm x)"})
    errors = [f.rule for f in lint(put(tmp_path, "PaddleOCR", text)) if f.level == "error"]
    assert errors == ["shell-text"]


def test_a_mode_that_cannot_run_is_a_note(tmp_path: Path) -> None:
    text = change(SUITE, {37: "infer_model:$(x)"})
    levels = {(f.level, f.rule) for f in lint(put(tmp_path, "PaddleOCR", text))}
    assert ("note", "no-plan") in levels


def test_without_a_profile(tmp_path: Path) -> None:
    assert ("warning", "no-profile", None) in found(tmp_path, SUITE, "mine")
    other = "====a====\nmodel_name:x\nb:1\n"
    assert {(level, rule) for level, rule, _ in found(tmp_path, other, "mine")} == {
        ("error", "no-profile")
    }
    with pytest.raises(UsageError):
        lint(put(tmp_path, "mine", SUITE), profile="nonsense")


def test_the_worst_come_first_and_are_counted(tmp_path: Path) -> None:
    text = change(SUITE, {16: "norm_train:$(x) ", 41: "--use_gpu:Ture"})
    findings = Findings(tuple(lint(put(tmp_path, "PaddleOCR", text))))
    levels = [finding.level for finding in findings.findings]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    assert findings.errors == levels.count("error") > 0


def test_offline_quantisation_without_some_lines(tmp_path: Path) -> None:
    text = "====a====\nmodel_name:x\npython:py\nw:\ns:\ninfer_model:a|b\ninfer_export:q.py\n"
    problems = found(tmp_path, text + "infer_quant:True\ninference:i.py\n", "mine")
    assert ("warning", "list-too-short", 7) in problems


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (change(TUTORIAL, {10: None}), ("error", "shifted", 10)),
        (TUTORIAL.replace("norm_train:f", "# mine\nnorm_train:f"), ("error", "inserted-line", 14)),
        (TUTORIAL.replace("eval:fit", "eval:x\neval:fit"), ("error", "inserted-line", 17)),
        (change(SUITE, {17: None}), ("error", "shifted", 17)),
    ],
)
def test_a_shifted_line_is_named_where_nothing_tells_the_profile(
    tmp_path: Path, text: str, wanted: tuple[str, str, int]
) -> None:
    assert found(tmp_path, text, "mine") == {wanted}
    with pytest.raises(UsageError, match=f":{wanted[2]}: .* shifted \\(the .* layout"):
        make_plan(put(tmp_path, "mine", text), "lite_train_lite_infer")


def test_a_problem_is_told_once(tmp_path: Path) -> None:
    path = put(tmp_path, "mine", change(TUTORIAL, {4: "gpu_list:0|1.2.3.4;0,1"}))
    assert [finding.rule for finding in lint(path)].count("gpu-list-by-length") == 1
