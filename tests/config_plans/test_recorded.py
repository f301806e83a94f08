"""Every recorded run of a real repo is planned equal by ``--as-bash``, or refused with a reason.

The recordings are no part of the project; where they are missing, these tests are skipped.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter, defaultdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tipcheck.config_plans.find import root_of
from tipcheck.config_plans.lint import lint
from tipcheck.config_plans.planner import make_plan
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from tipcheck.config_plans import Plan

SHARED = Path(
    os.environ.get("TIPCHECK_SHARED") or Path(__file__).resolve().parents[2].parent / "shared"
)
CONFIGS = SHARED / "tipc" / "configs"
RECORDED = SHARED / "tipc" / "recorded.jsonl.gz"
pytestmark = pytest.mark.skipif(
    not RECORDED.is_file(), reason=f"no recordings in {SHARED}; set TIPCHECK_SHARED"
)

ALL = {"models": 20, "PARL": 12}
MOST = ("PaddleOCR", "PaddleClas", "PaddleDetection", "PaddleSeg")
MANY = ("PaddleRS", "PaddleVideo", "PaddleNLP", "PaddleRec", "PaddleGAN", "Paddle3D")
UNRUNNABLE = ("PaddleScience", "PaddleOCR/test_tipc/supplementary")
"""What the scripts of their repos start nothing, or only nonsense, for."""


def started(plan: Plan, root: str) -> list[list[str]]:
    return [
        [
            step.cwd,
            step.env.get("CUDA_VISIBLE_DEVICES") or "<unset>",
            *(argument.replace(root, "<W>/repo") for argument in step.argv),
        ]
        for step in plan.steps
    ]


@lru_cache(maxsize=1)
def outcomes() -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for line in lines:
            record: dict[str, Any] = json.loads(line)
            path = CONFIGS / record["repo"] / record["config"]
            try:
                plan = make_plan(path, record["mode"], as_bash=True)
            except UsageError as error:
                names_it = str(path) in str(error) and (error.hint or ":" in error.where)
                found[record["repo"]]["refused" if names_it else "refused without a reason"] += 1
                continue
            same = started(plan, str(root_of(path))) == record["commands"]
            name = "equal" if same else f"wrong: {record['config']} {record['mode']}"
            found[record["repo"]][name] += 1
    return found


def test_every_record_is_equal_or_refused_with_a_reason() -> None:
    others = {
        repo: dict(kinds) for repo, kinds in outcomes().items() if set(kinds) - {"equal", "refused"}
    }
    assert others == {}


@pytest.mark.parametrize(("repo", "count"), ALL.items())
def test_all_of_these_are_equal(repo: str, count: int) -> None:
    assert outcomes()[repo] == {"equal": count}


@pytest.mark.parametrize(
    ("repo", "share"), [*((repo, 0.95) for repo in MOST), *((repo, 0.9) for repo in MANY)]
)
def test_most_of_these_are_equal(repo: str, share: float) -> None:
    kinds = outcomes()[repo]
    assert kinds["equal"] >= share * kinds.total()


def test_lint_stops_no_config_that_works() -> None:
    stopped = {
        str(path.relative_to(CONFIGS))
        for path in sorted(CONFIGS.rglob("*.txt"))
        if any(finding.level == "error" for finding in lint(path))
    }
    assert {path for path in stopped if not path.startswith(UNRUNNABLE)} == set()


@pytest.mark.parametrize(
    ("path", "rule", "line"),
    [
        ("PaddleClas/Xception/Xception41_train_amp_infer_python.txt", "epochs-lost", 7),
        ("PaddleClas/Xception/Xception41_train_amp_infer_python.txt", "misspelt-flag", 39),
        (
            "PaddleNLP/transformer/base/transformer_base_static_params.txt",
            "leaking-cuda-visible-devices",
            4,
        ),
        ("PaddleSpeech/pwgan/train_infer_python.txt", "null-with-blank", 30),
        ("PaddleOCR/ch_ppocr_server_v2_0_det/train_infer_python.txt", "unknown-mode", 9),
        ("STANET-Paddle-lite/stanet/train_infer_python.txt", "empty-line", 27),
    ],
)
def test_known_defects_are_found(path: str, rule: str, line: int) -> None:
    repo, _, rest = path.partition("/")
    (config,) = (CONFIGS / repo).glob(f"**/configs/{rest}")
    assert (rule, line) in {(finding.rule, finding.line) for finding in lint(config)}


def test_an_ocr_config_without_one_line_is_refused_there() -> None:
    path = CONFIGS / "PaddleOCR/test_tipc/configs/ch_PP-OCRv4_server_rec_fp32_ultra"
    lines = (path / "train_infer_python.txt").read_text("utf-8").splitlines()
    shifted = [line for line in lines if not line.startswith("pact_train")]
    assert len(shifted) == len(lines) - 1
    from tipcheck.config_plans.layout import gaps  # noqa: PLC0415
    from tipcheck.config_plans.profile import load  # noqa: PLC0415
    from tipcheck.config_plans.text import parse  # noqa: PLC0415

    found = gaps(parse("\n".join(shifted).encode(), path / "x.txt"), load("ocr"))
    assert [(gap.number, gap.expected and gap.expected.number) for gap in found] == [(17, 17)]
