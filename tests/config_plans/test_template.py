from __future__ import annotations

import pytest

from tipcheck.config_plans.template import TemplateError, compile_condition, compile_template
from tipcheck.config_plans.words import BracketError

VALUES = {"a": "1", "b": "", "n": "null", "a.key": "--a", "n.key": "--n", "two": "x|y"}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("x {a}-{missing}", "x 1-"),
        ("[a]", "--a=1"),
        ("[n]", " "),
        ("[n={a}/z]", "--n=1/z"),
        ("['key'={a}]", "key=1"),
        ("['{n}'={a}]", " "),
        ("[a={b}]", " "),
    ],
)
def test_gaps_are_filled(template: str, filled: str) -> None:
    assert compile_template(template).fill(VALUES) == filled


def test_a_template_knows_its_variables() -> None:
    assert compile_template("{a} [n={b}]").names == {"a", "b", "n.key"}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("{a} = 1", True),
        ("{a} != 1", False),
        ("'{b}' = ''", True),
        ("'{b}' != ''", False),
        ("{b} == null", False),
        ("{b} !== null", True),
        ("{two} has x", True),
        ("{a} in 1 2", True),
        (["{a} = 1", "{a} = 2"], False),
        ({"any": ["{a} = 2", "{a} = 1"]}, True),
        ({"not": "{a} = 1"}, False),
    ],
)
def test_conditions(condition: object, holds: bool) -> None:
    compiled = compile_condition(condition)  # type: ignore[arg-type]
    assert compiled.holds(VALUES, strict=True) is holds


def test_a_test_that_bash_cannot_read_fails_or_raises() -> None:
    condition = compile_condition("{b} = null")
    assert not condition.holds(VALUES, strict=False)
    with pytest.raises(BracketError):
        condition.holds(VALUES, strict=True)


@pytest.mark.parametrize("source", ["no operator", {"all": []}])
def test_what_is_no_condition(source: object) -> None:
    with pytest.raises(TemplateError):
        compile_condition(source)  # type: ignore[arg-type]
