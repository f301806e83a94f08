"""The committed reference pages are those that the code would write."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
SCRIPT = ROOT / "docs" / "make_reference.py"


def written_by_the_script() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("make_reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pages: dict[str, str] = module.pages()
    return pages


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return written_by_the_script()


def test_the_pages_say_what_the_code_says(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        page = REFERENCE / name
        assert page.exists(), f"docs/reference/{name} is missing: run python docs/make_reference.py"
        assert page.read_text(encoding="utf-8") == text, (
            f"docs/reference/{name} is stale: run python docs/make_reference.py"
        )


def test_no_page_is_left_of_something_that_is_gone(pages: dict[str, str]) -> None:
    committed = {str(path.relative_to(REFERENCE)) for path in REFERENCE.rglob("*.md")}
    assert committed == set(pages)


def test_every_command_and_the_contracts_that_cross_rooms_are_there(pages: dict[str, str]) -> None:
    for word in ("compare", "doctor", "demo", "completion"):
        assert f"## tipcheck {word}" in pages["commands.md"]
    for word in ("plan", "step-result", "trace", "comparison", "ladder", "bundle", "diagnosis"):
        assert f"`tipcheck.{word}/" in pages["schemas.md"]


def test_the_pages_do_not_depend_on_the_terminal(
    pages: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert written_by_the_script() == pages
