"""The guide lists every rule and every profile, in the words of the code."""

from __future__ import annotations

from pathlib import Path

from tipcheck.config_plans.profile import names
from tipcheck.config_plans.rules import RULES

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "configs.md"


def test_the_guide_lists_every_rule_and_profile() -> None:
    text = GUIDE.read_text("utf-8").replace("`\\|`", "|")
    assert [rule for rule, line in RULES.items() if f"| `{rule}` | {line} |" not in text] == []
    assert [name for name in names() if f"`{name}`" not in text] == []
