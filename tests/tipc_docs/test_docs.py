"""``tipcheck docs``: commands come from plans, numbers from results.json, nothing else is known."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.config_plans.configs import SUITE, TUTORIAL, change, put
from tests.scaffold.repos import call, make_repo, with_tipcheck
from tipcheck import wire
from tipcheck.cli import docs, init
from tipcheck.errors import ToolError, UsageError
from tipcheck.report.run_autolog import AutoLog
from tipcheck.report.run_result import RunReport, StepReport
from tipcheck.report.tipc_docs_words import CHINESE, ENGLISH
from tipcheck.step_runner.outcome import Outcome

LITE = "lite_train_lite_infer"
PTQ = """\
===========================ptq_params===========================
model_name:tiny
python:python3
--use_gpu:False
--model_path:tiny_infer/
--output_dir:./tiny_infer_ptq/
--data_dir:./lite_data/
--batch_num:2
--batch_size:2
##
trainer:ptq_train
ptq_train:deploy/post_quant.py
##
===========================infer_params===========================
inference:deploy/infer.py
--use-gpu:False
--batch-size:1
--model-dir:./tiny_infer_ptq/
--img-path:./images/demo.jpg
--benchmark:True
"""


def page(config: Path, name: str) -> str:
    return (config.parents[2] / name).read_text("utf-8")


def step(config: str, name: str, outcome: Outcome | None, **known: object) -> StepReport:
    stage = "infer" if "infer" in name else name.rpartition("/")[2]
    return StepReport(config, LITE, "tiny", name, stage, outcome, **known)  # type: ignore[arg-type]


def write_run(path: Path, started: str, *steps: StepReport) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    report = RunReport(1, started, 1.0, good=True, interrupted_by="", counts={}, steps=steps)
    path.write_text(wire.dumps(report), "utf-8")
    return path


def test_without_results_it_says_so(tmp_path: Path) -> None:
    config = put(tmp_path, "mine", TUTORIAL)
    assert call(docs, config) == 0
    overview = page(config, "README.md")
    assert overview.startswith("<!-- made by tipcheck docs -->\n\n# TIPC ")
    assert CHINESE.not_run in overview
    assert (
        "| tiny | 基础训练推理 | ⬜ | ⬜ | ⬜ | ⬜ | "
        "[测试说明](docs/test_train_inference_python.md) |" in overview
    )
    text = page(config, "docs/test_train_inference_python.md")
    assert (
        CHINESE.results_missing.format(config="test_tipc/configs/tiny/train_infer_python.txt")
        in text
    )
    assert "`python3 fit.py --lr 0.1 --out=" in text


def test_numbers_are_those_of_the_results(tmp_path: Path) -> None:
    config = put(tmp_path, "mine", change(TUTORIAL, {4: "gpu_list:-1", 28: "--device:cpu"}))
    name = "test_tipc/configs/tiny/train_infer_python.txt"
    autolog = AutoLog(precision="fp32", runtime_device="cpu", inference_ms=12.25, batch_size=1.0)
    write_run(
        config.parents[2] / "output/results.json", "2026-05-02T10:00:00+00:00",
        step(
            name, "n/train", Outcome.PASSED,
            seconds=61.26, peak_memory_bytes=123_456_789, log="a.log",
        ),
        step(str(config), "n/eval", Outcome.SKIPPED, seconds=3.0),
        step(name, "n/export", Outcome.FAILED, seconds=7.0, reason="ValueError: a | b <c>"),
        step(name, "n/infer-cpu_batchsize_1", Outcome.PASSED, seconds=1.04, autolog=autolog),
        step(name, "n/infer-cpu_batchsize_8", Outcome.BLOCKED),
        step(name, "n/infer-more", None),
        step("test_tipc/configs/other.txt", "n/train", Outcome.FAILED, seconds=99.9),
        step("/elsewhere/a.txt", "n/train", Outcome.FAILED, seconds=99.9),
    )  # fmt: skip
    write_run(
        config.parents[2] / "output/older/results.json", "2026-05-01T10:00:00+00:00",
        step(name, "n/train", Outcome.FAILED, seconds=77.7),
    )  # fmt: skip
    assert call(docs, config, "--lang", "en") == 0
    overview = page(config, "README.md")
    assert "| tiny | training and inference | ✅ 1/1 | ✅ 1/1 | ❌ 0/1 | ❌ 1/3 | " in overview
    assert "The last run began at 2026-05-02T10:00:00+00:00." in overview
    text = page(config, "docs/test_train_inference_python.md")
    assert "| `n/train` | passed | 61.3 | 123.5 | `a.log` |" in text
    assert "| `n/eval` | passed (in an earlier run) | — | — | — |" in text
    assert "| `n/export` | failed | 7.0 | — | — |" in text
    assert "| `n/infer-cpu_batchsize_8` | blocked (a step it needs did not pass) | — |" in text
    assert "| `n/infer-more` | not run (the run was interrupted) | — |" in text
    assert "| `n/infer-cpu_batchsize_1` | cpu | fp32 | 1 | — | 12.25 | — | — | — |" in text
    assert r"- `n/export`: ValueError: a \| b \<c\>" in text
    assert "99.9" not in text
    assert "77.7" not in text

    chosen = config.parents[2] / "output/older/results.json"
    assert call(docs, config, "--lang", "en", "--results", chosen) == 0
    assert "77.7" in page(config, "docs/test_train_inference_python.md")


def test_every_kind_of_test_has_its_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = put(tmp_path, "mine", TUTORIAL)
    names = ["train_amp_infer_python", "train_pact_infer_python", "train_ptq_infer_python", "odd"]
    others = [
        put(tmp_path, "mine", PTQ if "ptq" in name else TUTORIAL, f"{name}.txt") for name in names
    ]
    assert call(docs, config, *others, others[0]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "wrote test_tipc/README.md",
        "wrote test_tipc/docs/test_train_inference_python.md",
        "wrote test_tipc/docs/test_train_amp_inference_python.md",
        "wrote test_tipc/docs/test_train_pact_inference_python.md",
        "wrote test_tipc/docs/test_train_ptq_inference_python.md",
        "wrote test_tipc/docs/test_odd.md",
    ]
    ptq = page(config, "docs/test_train_ptq_inference_python.md")
    ptq_config = "test_tipc/configs/tiny/train_ptq_infer_python.txt"
    assert f"bash test_tipc/prepare.sh {ptq_config} whole_infer" in ptq
    assert "| tiny | — | — | ⬜ | ⬜ |" in ptq
    assert "| tiny | odd |" in page(config, "README.md")


def test_models_share_a_document(tmp_path: Path) -> None:
    one = put(tmp_path, "mine", TUTORIAL)
    two = one.parents[1] / "other" / one.name
    two.parent.mkdir()
    two.write_text(change(TUTORIAL, {2: "model_name:o|ther_", 14: "norm_train:fit.py --a '`x|`'"}))
    assert call(docs, one, two, "--lang", "en") == 0
    text = page(one, "docs/test_train_inference_python.md")
    assert r"| o\|ther\_ | ⬜ | ⬜ | ⬜ | ⬜ |" in text
    assert "'`x" in text
    assert text.count("## 1.") == 1
    assert "configs/other/train_infer_python.txt" in text


def test_other_layouts_are_documented_too(tmp_path: Path) -> None:
    config = put(tmp_path, "PaddleOCR", SUITE)
    assert call(docs, config, "--profile", "ocr") == 0
    assert "tools/train.py -c a.yml" in page(config, "docs/test_train_inference_python.md")


def test_a_config_without_values_for_any_mode_still_trains(tmp_path: Path) -> None:
    lines = {6: "null:null", 8: "null:null", 22: "norm_export:null"}
    config = put(
        tmp_path, "mine", change(TUTORIAL, lines | {25: "infer_export:null", 27: "inference:null"})
    )
    assert call(docs, config) == 0
    assert "| ⬜ | ⬜ | — | — |" in page(config, "README.md")


def test_a_folder_stands_for_its_configs(tmp_path: Path) -> None:
    config = put(tmp_path, "mine", TUTORIAL, "train_infer_python.txt")
    assert call(docs, config.parents[1]) == 0
    assert "| tiny |" in page(config, "README.md")


def test_a_dry_run_prints_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = put(tmp_path, "mine", TUTORIAL)
    assert call(docs, config, "--dry-run") == 0
    assert "==> test_tipc/README.md <==" in capsys.readouterr().out
    assert not (config.parents[2] / "README.md").exists()


def test_documents_by_hand_are_replaced_only_by_force(tmp_path: Path) -> None:
    config = put(tmp_path, "mine", TUTORIAL)
    readme = config.parents[2] / "README.md"
    readme.write_text("# mine")
    with pytest.raises(UsageError, match=r"README\.md: written by a person"):
        call(docs, config)
    assert readme.read_text() == "# mine"
    assert call(docs, config, "--force") == 0
    assert call(docs, config) == 0
    (config.parents[2] / "docs/test_train_inference_python.md").unlink()
    (config.parents[2] / "docs").rmdir()
    (config.parents[2] / "docs").write_text("a file")
    with pytest.raises(ToolError, match="cannot be written"):
        call(docs, config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("{", "not readable as JSON"),
        ('{"schema": "tipcheck.plan/1"}', "expected schema"),
        ('{"schema": "tipcheck.run/1", "steps": 3}', "does not fit"),
    ],
)
def test_results_that_are_none_are_refused(tmp_path: Path, text: str | None, message: str) -> None:
    config = put(tmp_path, "mine", TUTORIAL)
    results = tmp_path / "results.json"
    if text is not None:
        results.write_text(text)
    with pytest.raises(UsageError, match=message):
        call(docs, config, "--results", results)


def test_configs_without_steps_or_of_two_repos_are_refused(tmp_path: Path) -> None:
    one, two = put(tmp_path, "one", TUTORIAL), put(tmp_path, "two", TUTORIAL)
    with pytest.raises(UsageError, match="several repos"):
        call(docs, one, two)
    two.write_text(
        change(TUTORIAL, {4: "gpu_list:what;ever", 25: "infer_export:null", 27: "inference:null"})
    )
    with pytest.raises(UsageError):
        call(docs, two)
    two.write_text("nonsense\n")
    with pytest.raises(UsageError):
        call(docs, two)
    with pytest.raises(UsageError, match="lines are not those of profile"):
        call(docs, two, "--profile", "tutorial")
    nothing = {14: "norm_train:null", 25: "infer_export:null", 27: "inference:null"}
    two.write_text(change(TUTORIAL, nothing))
    with pytest.raises(UsageError, match="no step to run in any mode"):
        call(docs, two)
    with pytest.raises(UsageError, match="no such file"):
        call(docs, two.with_name("nowhere.txt"))


def test_both_languages_say_the_same_things() -> None:
    for name in ("test", "about", "modes", "stages", "outcomes"):
        assert set(getattr(CHINESE, name)) == set(getattr(ENGLISH, name))
    for name in ("columns", "step_columns", "results_columns", "speed_columns", "files_about"):
        assert len(getattr(CHINESE, name)) == len(getattr(ENGLISH, name))
    assert {outcome.value for outcome in Outcome} < set(CHINESE.outcomes)


def test_the_commands_in_the_documents_run_and_the_numbers_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_repo(tmp_path)
    (root / "lite_data").mkdir()
    call(init, root, "--yes", "--gpu-list", "-1", "--configs", "normal")
    env = with_tipcheck(tmp_path / "bin")
    document = root / "test_tipc/docs/test_train_inference_python.md"
    commands = [
        line
        for block in re.findall(r"```bash\n(.*?)```", document.read_text("utf-8"), re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(commands) == 8
    for command in commands:
        if "whole_infer" in command.split()[-1] and "train" not in command.split()[-1]:
            continue  # needs weights that somebody trained before
        ran = subprocess.run(
            ["bash", "-c", command], cwd=root, env=env, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, command + ran.stdout + ran.stderr
    monkeypatch.chdir(root)
    assert call(docs, Path("test_tipc/configs/tiny/train_infer_python.txt")) == 0
    text = document.read_text("utf-8")
    runs = [json.loads(path.read_text("utf-8")) for path in root.rglob("results.json")]
    newest = max(run["started"] for run in runs)  # of one second there may be two
    assert any(
        len(run["steps"]) == 4
        and all(
            f"| `{step['step']}` | 通过 | {step['seconds']:.1f} |" in text for step in run["steps"]
        )
        for run in runs
        if run["started"] == newest
    )
    assert CHINESE.not_run not in text


def test_both_languages_stand_side_by_side(tmp_path: Path) -> None:
    config = put(tmp_path, "mine", TUTORIAL)
    assert call(docs, config, "--lang", "both") == 0
    first, second = page(config, "README.md"), page(config, "README_en.md")
    assert "| tiny | 基础训练推理 |" in first
    assert "](docs/test_train_inference_python.md)" in first
    assert "| tiny | training and inference |" in second
    assert "](docs/test_train_inference_python_en.md)" in second
    assert CHINESE.how_about in page(config, "docs/test_train_inference_python.md")
    assert ENGLISH.how_about in page(config, "docs/test_train_inference_python_en.md")
