"""Whatever stands in a config, the answer is a plan or an error that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipcheck.config_plans.lint import lint
from tipcheck.config_plans.planner import plan_config
from tipcheck.config_plans.profile import load, names
from tipcheck.config_plans.text import parse
from tipcheck.errors import TipcheckError

from .configs import SUITE, TUTORIAL

PIECES = st.sampled_from(
    ["|", ":", " ", "$(x)", "`", '"', "'", "\\", "ü", "null", "##", "===", "-n", "{a,b}", "*", "#",
     "~", "\t", "\r", "=", "[a]", "", ";", "&&", "\x1b[31m", "lite_train_lite_infer=1"]
)  # fmt: skip
EDITS = st.lists(
    st.tuples(st.sampled_from(["drop", "add", "into", "swap"]), st.integers(0, 60), PIECES),
    max_size=4,
)


def edited(text: str, edits: list[tuple[str, int, str]]) -> bytes:
    lines = text.splitlines()
    for kind, number, piece in edits:
        at = number % len(lines)
        if kind == "drop" and len(lines) > 1:
            del lines[at]
        elif kind == "add":
            lines.insert(at, piece)
        elif kind == "into":
            middle = len(lines[at]) // 2
            lines[at] = lines[at][:middle] + piece + lines[at][middle:]
        else:
            lines[at], lines[-1] = lines[-1], lines[at]
    return ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("name", names())
@given(edits=EDITS, text=st.sampled_from([SUITE, TUTORIAL]), as_bash=st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_plan_or_an_error(
    name: str, edits: list[tuple[str, int, str]], text: str, *, as_bash: bool
) -> None:
    profile = load(name)
    refusals = []
    for mode in profile.modes:
        try:
            config = parse(edited(text, edits), Path("c.txt"))
            plan = plan_config(config, mode, profile, root=Path("/r"), as_bash=as_bash)
        except TipcheckError as error:
            refusals.append(str(error))
            continue
        ids = [step.id for step in plan.steps]
        assert len(set(ids)) == len(ids)
        assert all(need in ids[: ids.index(s.id)] for s in plan.steps for need in s.needs)
        assert all(step.argv and all(isinstance(a, str) for a in step.argv) for step in plan.steps)
        assert all(step.corrections == () for step in plan.steps if as_bash)
    assert all("c.txt" in refusal for refusal in refusals)


@given(edits=EDITS, text=st.sampled_from([SUITE, TUTORIAL]))
@settings(max_examples=60, deadline=None)
def test_lint_always_answers(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, int, str]], text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "PaddleOCR" / "test_tipc" / "c.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(edited(text, edits))
    for finding in lint(path):
        assert finding.message
        assert finding.level in {"error", "warning", "note"}
