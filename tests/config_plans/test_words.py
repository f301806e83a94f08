from __future__ import annotations

import shutil
import subprocess
import time

import pytest

from tipcheck.config_plans.words import (
    BracketError,
    ShellTextError,
    bracket_test,
    is_plain_text,
    pattern_test,
    split_command,
    split_list,
    split_words,
)


@pytest.mark.parametrize(
    ("text", "items"),
    [("a|b", ["a", "b"]), ("", []), ("a", ["a"]), ("a||b", ["a", "", "b"]), ("a|", ["a"])],
)
def test_a_list_falls_apart_at_bars(text: str, items: list[str]) -> None:
    assert split_list(text) == items


QUOTED = [
    ("python a.py  --x=1 ", ["python", "a.py", "--x=1"]),
    ('a --x="1,2;3" b', ["a", "--x=1,2;3", "b"]),
    ("a 'x  y'z", ["a", "x  yz"]),
    ("a --m=x|y|z", ["a", "--m=x", "y", "z"]),
    ('a "x|y"', ["a", "x y"]),
    ("a \"<unk>\" ''", ["a", "<unk>", ""]),
    ('a b\\ c "d\\"e\\x"', ["a", "b c", 'd"e\\x']),
    ("a [1,2] x#y ä", ["a", "[1,2]", "x#y", "ä"]),
    ("a {b} x={}", ["a", "{b}", "x={}"]),
]


@pytest.mark.parametrize(("command", "words"), QUOTED)
def test_quotes_are_removed_and_bars_are_blanks(command: str, words: list[str]) -> None:
    assert split_command(command) == words


@pytest.mark.skipif(shutil.which("bash") is None, reason="compares with bash, which is missing")
@pytest.mark.parametrize(("command", "words"), QUOTED)
def test_bash_agrees(command: str, words: list[str]) -> None:
    script = """show() { printf '%s\\0' "$@"; }; IFS="|"; cmd="show $1"; eval $cmd"""
    found = subprocess.run(
        ["bash", "-c", script, "-", command], capture_output=True, check=True
    ).stdout
    assert found.decode().split("\0")[:-1] == words


@pytest.mark.parametrize(
    "command",
    [
        "a $(touch x)",
        "a `touch x`",
        'a "$HOME"',
        "a ; b",
        "a && b",
        "a > b",
        "a (b)",
        "a #b",
        "a ~/b",
        "a {b,c}",
        "a {1..3}",
        "a 'b",
        'a "b',
        "a \\",
    ],
)
def test_text_that_a_shell_would_evaluate_is_refused(command: str) -> None:
    assert not is_plain_text(command)
    with pytest.raises(ShellTextError):
        split_command(command)


def test_a_long_word_is_cut_in_the_message() -> None:
    with pytest.raises(ShellTextError, match="…") as error:
        split_command("a $" + "x" * 1_000_000)
    assert len(str(error.value)) < 100


@pytest.mark.parametrize(
    "command", ["{" + "a," * 300_000, "'" + "a" * 500_000 + "'", '"a"' * 100_000, "{" * 300_000]
)
def test_a_long_command_takes_no_time(command: str) -> None:
    started = time.process_time()
    assert len(split_command(command)) == 1
    assert time.process_time() - started < 10, "not quadratic: that would take minutes"


def test_unquoted_patterns_are_marked() -> None:
    words = split_words("a out/*/b '*' \"c\"?")
    assert [word.pattern for word in words] == [False, True, False, True]
    assert [word.pattern for word in split_words("a out/*/b c")] == [False, True, False]


def test_single_brackets_compare_words() -> None:
    assert bracket_test("a", "=", "a")
    assert not bracket_test("a", "=", "b")
    assert bracket_test("a", "!=", "b")
    assert bracket_test("", "=", "")


@pytest.mark.parametrize(("left", "right"), [("", "null"), ("a", ""), ("a|b", "c")])
def test_single_brackets_stumble_over_empty_and_several_words(left: str, right: str) -> None:
    with pytest.raises(BracketError):
        bracket_test(left, "=", right)


def test_double_brackets_take_a_pattern() -> None:
    assert pattern_test("abc", "a*")
    assert not pattern_test("", "null")
