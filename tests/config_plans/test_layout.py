"""Missing and inserted lines are found where they are, whatever stands around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tipcheck.config_plans import layout
from tipcheck.config_plans.profile import load
from tipcheck.config_plans.text import parse, shorten
from tipcheck.errors import UsageError

from .configs import KLQUANT, SUITE, TUTORIAL, change


def gaps(text: str, profile: str) -> list[tuple[int, int | None]]:
    found = layout.gaps(parse(text.encode(), Path("c.txt")), load(profile))
    return [(gap.number, gap.expected.number if gap.expected else None) for gap in found]


@pytest.mark.parametrize(("text", "profile"), [(SUITE, "ocr"), (TUTORIAL, "tutorial")])
def test_a_right_layout_has_no_gaps(text: str, profile: str) -> None:
    assert gaps(text, profile) == []


@pytest.mark.parametrize("missing", [1, 3, 4, 11, 12, 14, 16, 17, 18, 22, 24, 30, 31, 36, 37, 40])
def test_a_missing_line_is_named(missing: int) -> None:
    assert gaps(change(SUITE, {missing: None}), "ocr") == [(missing, missing)]


@pytest.mark.parametrize("missing", [5, 6, 7, 8, 9, 10, 13, 20, 25, 28, 29])
def test_a_missing_line_without_a_landmark_is_found_in_its_section(missing: int) -> None:
    ((number, expected),) = gaps(change(SUITE, {missing: None}), "ocr")
    assert expected is not None
    sections = [(1, 14), (14, 22), (22, 27), (27, 36), (36, 51)]
    assert any(first <= missing <= last and first <= expected <= last for first, last in sections)
    assert number == expected


@pytest.mark.parametrize("missing", [2, 4, 10, 12, 13, 14, 17, 18, 22, 24, 27])
def test_a_missing_line_of_the_tutorial(missing: int) -> None:
    assert gaps(change(TUTORIAL, {missing: None}), "tutorial") == [(missing, missing)]


@pytest.mark.parametrize("at", [2, 5, 9, 15, 17, 24, 30, 38])
@pytest.mark.parametrize("line", ["# a comment", "norm_train:again", "====more====", "##"])
def test_an_inserted_line_is_named(at: int, line: str) -> None:
    lines = SUITE.splitlines()
    text = "\n".join([*lines[: at - 1], line, *lines[at - 1 :]])
    found = gaps(text, "ocr")
    assert [expected for _, expected in found] == [None]
    assert abs(found[0][0] - at) <= 1


def test_two_missing_lines() -> None:
    assert gaps(change(SUITE, {17: None, 31: None}), "ocr") == [(17, 17), (30, 31)]


def test_other_keys_in_the_right_place_are_no_gap() -> None:
    text = change(SUITE, {17: "quant_export:null", 18: "fpgm_export:null"})
    assert gaps(text, "ocr") == []
    assert gaps(change(SUITE, {11: "trained_model_name:x"}), "det") == []


def test_benchmark_sections_are_no_part_of_the_layout() -> None:
    tail = "====train_benchmark_params====\nbatch_size:2\nfp_items:fp32\n"
    assert gaps(SUITE + tail, "ocr") == []
    assert gaps(change(SUITE, {51: None}) + tail, "ocr") == []


def test_a_file_may_end_early() -> None:
    assert gaps("\n".join(SUITE.splitlines()[:22]), "ocr") == []


def test_a_shifted_config_is_refused_with_the_line() -> None:
    config = parse(change(SUITE, {17: None}).encode(), Path("c.txt"))
    with pytest.raises(UsageError, match=r"'pact_train:null'.*missing here") as error:
        layout.check_layout(config, load("ocr"))
    assert error.value.where == "c.txt:17"
    inserted = parse(change(SUITE, {16: "# x\nnorm_train:a"}).encode(), Path("c.txt"))
    with pytest.raises(UsageError, match="'# x' does not belong here"):
        layout.check_layout(inserted, load("ocr"))


def test_long_lines_are_cut_in_messages() -> None:
    assert len(shorten("x" * 1000)) < 70


@pytest.mark.parametrize("missing", [6, 7, 8, 9, 41, 42, 43, 44, 45, 46, 47, 48])
def test_options_of_the_repo_tell_where_a_line_is_missing(missing: int) -> None:
    assert gaps(change(SUITE, {missing: None}), "ocr") == [(missing, missing)]


@pytest.mark.parametrize("at", [6, 8, 42, 44, 47, 48])
def test_options_of_the_repo_tell_where_a_line_was_put_in(at: int) -> None:
    lines = SUITE.splitlines()
    ((number, expected),) = gaps(
        "\n".join([*lines[: at - 1], "null:null", *lines[at - 1 :]]), "ocr"
    )
    assert (expected, abs(number - at) <= 1) == (None, True)


def test_options_that_look_like_nothing_known_are_no_gap() -> None:
    odd = {number: f"--x{number}:1" for number in (5, 6, 7, 8, 9, 10, 28, 29, *range(41, 51))}
    assert gaps(change(SUITE, odd), "ocr") == []


def test_a_config_of_another_layout_is_refused() -> None:
    config = parse(KLQUANT.encode(), Path("c.txt"))
    layout.check_layout(config, load("klquant"))
    with pytest.raises(UsageError, match="lines are not those of profile ocr") as error:
        layout.check_layout(config, load("ocr"))
    assert error.value.where == "c.txt:4"
