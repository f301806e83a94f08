from __future__ import annotations

import os
from pathlib import Path

import pytest

from tipcheck.config_plans import text
from tipcheck.errors import TipcheckError, ToolError, UsageError


@pytest.mark.parametrize(
    ("line", "key", "second", "after"),
    [
        ("a:b", "a", "b", "b"),
        ("a:b:c", "a", "b", "b:c"),
        ("a:", "a", "", ""),
        ("a", "a", "", "a"),
        (":v", "", "v", "v"),
        ("a: b ", "a", " b ", " b "),
        ("k:-n", "k", "", ""),
        ("-n:1", "", "1", "1"),
        ("k:-E foo", "k", "-E foo", "-E foo"),
        ("::x", "", "", ":x"),
    ],
)
def test_a_line_falls_apart_as_in_bash(line: str, key: str, second: str, after: str) -> None:
    assert (text.key_of(line), text.second_field(line), text.after_colon(line)) == (
        key,
        second,
        after,
    )


def test_the_third_field() -> None:
    assert text.third_field("a:b:c:d") == "c"
    assert text.third_field("a:b") == ""


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("m=5|n=90", "5"),
        ("5", ""),
        ("n=9", ""),
        ("m=a=b", "a"),
        ("m=5 |x=1", "5 "),
        (" m=5", ""),
        ("m=-n", ""),
        ("m=1|m=2", "1"),
        ("m", ""),
        ("m=$((1+1))", "$((1+1))"),
    ],
)
def test_a_value_for_a_mode(value: str, found: str) -> None:
    assert text.for_mode(value, "m") == found


def test_the_modes_of_a_value() -> None:
    assert text.modes_of("a=1|b|c=2") == ["a", "c"]


@pytest.mark.parametrize(
    ("key", "value", "made"),
    [
        ("k", "v", "k=v"),
        ("null", "v", " "),
        ("k", "null", " "),
        ("k", " null", "k= null"),
        ("k", "", " "),
        ("k", " ", " "),
        ("k", "  ", "k=  "),
        ("", "v", "=v"),
        ("-o K", "v", "-o K=v"),
    ],
)
def test_an_option_is_made_as_in_bash(key: str, value: str, made: str) -> None:
    assert text.option(key, value) == made


def test_empty_lines_are_not_counted_but_keep_their_numbers() -> None:
    config = text.parse(b"a\n\nb\n  \nc", Path("c.txt"))
    assert [(line.number, line.text) for line in config.lines] == [
        (1, "a"),
        (3, "b"),
        (4, "  "),
        (5, "c"),
    ]
    assert config.counted(2) == text.Line(3, "b")
    assert config.counted(9) is None
    assert config.where(3) == "c.txt:3"
    assert config.where() == "c.txt"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a\0b", "binary"),
        (b"a\n\xff", "not UTF-8"),
        (b"a\n" * 30_000, "lines"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        text.parse(data, Path("c.txt"))


def test_a_missing_file_a_folder_and_a_huge_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        text.read(tmp_path / "missing")
    with pytest.raises(UsageError, match="folder"):
        text.read(tmp_path)
    with pytest.raises(TipcheckError):
        text.read(Path("a\0b"))
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(text.LARGEST + 1)
    with pytest.raises(UsageError, match="bytes"):
        text.read(huge)
    with pytest.raises(UsageError, match="no regular file"):
        text.read(Path("/dev/zero"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("a")
    path.chmod(0)
    with pytest.raises(ToolError, match="cannot be read"):
        text.read(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(UsageError, match="no regular file"):
        text.read(tmp_path / "pipe.txt")


def test_control_characters_are_written_out() -> None:
    assert text.visible("aä 日") == "aä 日"
    assert text.visible("a\x1b[31m\r\u202e") == "a\\x1b[31m\\r\\u202e"
