"""File patterns in a command are replaced when its step starts, and only where the plan says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tipcheck import wire
from tipcheck.cli.main import main
from tipcheck.config_plans import Plan, Step
from tipcheck.step_runner.patterns import argv_now


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("out/b/latest", "out/a/latest", "out/.hidden/latest"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("word", "patterns", "words"),
    [
        ("./out/*/latest", (1,), ["./out/a/latest", "./out/b/latest"]),
        ("out/[a]/lat?st", (1,), ["out/a/latest"]),
        ("out/*/none", (1,), ["out/*/none"]),
        ("./out/*/latest", (), ["./out/*/latest"]),
    ],
)
def test_what_a_pattern_becomes(
    word: str, patterns: tuple[int, ...], words: list[str], folder: Path
) -> None:
    step = Step("s", "export", ("cat", word), "s.log", patterns=patterns)
    assert argv_now(step, folder) == ("cat", *words)


def test_a_pattern_finds_what_an_earlier_step_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write = Step("w", "train", ("sh", "-c", "mkdir -p out/x; echo found > out/x/weights"), "w.log")
    read = Step("r", "export", ("cat", "out/*/weights"), "r.log", needs=("w",), patterns=(1,))
    plan = Plan("c.txt", "lite", "p", "m", (write, read))
    Path("plan.json").write_text(wire.dumps(plan), "utf-8")
    assert main(["run", "plan.json"]) == 0
    assert Path("r.log").read_text("utf-8") == "found\n"
    assert main(["run", "plan.json", "--resume", "--json"]) == 0
    results = json.loads(Path("test_tipc/output/results.json").read_text("utf-8"))
    assert [step["outcome"] for step in results["steps"]] == ["skipped", "skipped"]
