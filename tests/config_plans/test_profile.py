"""A profile that cannot be read says so when it is loaded, not when it is used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tipcheck.config_plans.planner import plan_config
from tipcheck.config_plans.profile import FOLDER, compile_profile
from tipcheck.config_plans.rules import RULES
from tipcheck.config_plans.template import TemplateError
from tipcheck.config_plans.text import parse

CONFIG = parse(b"====a====\nmodel_name:x\npython:py\nwords:a|b\n", Path("c.txt"))


def source(*start: dict[str, Any], **blocks: Any) -> dict[str, Any]:
    return {
        "about": "For tests.",
        "layout": "4-line",
        "values": "second-field",
        "modes": ["run"],
        "lines": {
            "1": {"name": "head", "kind": "header", "example": "==="},
            "2": {"name": "model_name", "kind": "name", "key": "model_name"},
            "3": {"name": "python", "kind": "python", "key": "python"},
            "4": {"name": "words", "kind": "list"},
        },
        "blocks": {"start": list(start), **blocks},
    }


def commands(*start: dict[str, Any], **blocks: Any) -> list[str]:
    profile = compile_profile("own", source(*start, **blocks))
    plan = plan_config(CONFIG, "run", profile, root=Path("/r"), as_bash=True)
    return [" ".join(step.argv) for step in plan.steps]


STEP = {"step": "train", "id": "t", "run": "{python} {word}", "log": "l"}


def test_a_profile_of_ones_own() -> None:
    loop = {"each": "word", "in": "{words}", "do": [{"skip": "{word} = a"}, STEP]}
    assert commands(loop) == ["py b"]
    counted: list[dict[str, Any]] = [
        {"set": {"n": "0"}},
        {"count": "n"},
        {"item": "word", "of": "{words}", "at": "{n}"},
        STEP,
    ]
    assert commands(*counted) == ["py b"]
    assert commands({"first": [{"when": "{mode} = other", "do": [STEP]}]}) == []
    assert commands({"use": "more"}, more=[STEP]) == ["py"]


def test_ids_are_unique() -> None:
    profile = compile_profile("own", source(STEP, STEP))
    plan = plan_config(CONFIG, "run", profile, root=Path("/r"), as_bash=True)
    assert [step.id for step in plan.steps] == ["t", "t#2"]


@pytest.mark.parametrize(
    "operation",
    [{"leap": 1}, {"use": "nowhere"}, {"skip": "nonsense"}, {"if": {"all": []}, "then": []}],
)
def test_what_is_no_operation(operation: dict[str, Any]) -> None:
    with pytest.raises(TemplateError):
        compile_profile("own", source(operation))


def test_an_unknown_kind_of_value() -> None:
    wrong = source()
    wrong["lines"]["4"]["kind"] = "colour"
    with pytest.raises(ValueError, match="colour"):
        compile_profile("own", wrong)


def test_every_rule_that_is_applied_is_documented() -> None:
    fixes = {
        rule
        for path in FOLDER.glob("*.json")
        for rule in re.findall(r'"fix": "([^"]+)"', path.read_text("utf-8"))
    }
    code = "\n".join(path.read_text("utf-8") for path in FOLDER.parent.glob("*.py"))
    named = set(re.findall(r'(?:note|Correction)\(\s*"([a-z-]+)"', code))
    assert fixes
    assert fixes | named == set(RULES)
