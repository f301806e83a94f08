"""``tipcheck compare`` as it is typed: what it prints, and how it ends."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tipcheck import wire
from tipcheck.cli.main import main
from tipcheck.compare import Comparison, Status


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    expected = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    actual = expected.copy()
    actual[1, 2] += 0.5
    np.savez(tmp_path / "expected.npz", y=expected, n=np.array([1, 2]))
    np.savez(tmp_path / "actual.npz", y=actual, n=np.array([1, 2]))
    return str(tmp_path / "expected.npz"), str(tmp_path / "actual.npz")


def test_equal_files_pass(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", files[0], files[0]]) == 0
    shown = capsys.readouterr().out
    assert "PASS  all equal within tolerance: 2 outputs, 14 elements" in shown


def test_a_difference_is_shown_with_its_evidence(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *files]) == 1
    shown = capsys.readouterr().out
    for text in (
        "✗ FAIL",
        "1/12",
        "worst at [1, 2]: expected 0.0909090936, actual 0.590909123",
        "tolerance: rtol 0.0001, atol 0.0001 (default for float32)",
        "FAIL  1 of 2 outputs differ; y: 1 of 12 elements",
        "compared: 2 of 2 outputs, 14 elements",
    ):
        assert text in shown


def test_json_holds_the_whole_verdict(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *files, "--json"]) == 1
    text = capsys.readouterr().out
    result = wire.loads(text, Comparison)
    assert result.status is Status.FAIL
    assert (result.expected, result.actual) == files
    assert json.loads(text)["tensors"][0]["worst"]["index"] == [1, 2]


def test_tolerances_can_be_given(files: tuple[str, str]) -> None:
    assert main(["compare", *files, "--atol", "0.6"]) == 0
    assert main(["compare", *files, "--rtol", "10"]) == 0
    assert main(["compare", *files, "--rtol", "0.1", "--atol", "0.1"]) == 1


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "-0.5"])
def test_impossible_tolerances_are_refused(
    value: str, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *files, f"--rtol={value}"]) == 2
    assert "give a number of 0 or more" in capsys.readouterr().err


def test_nan_has_to_be_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "a.npz")
    np.savez(path, y=np.array([1.0, np.nan]))
    assert main(["compare", path, path]) == 1
    assert "not finite: expected 1 NaN, 0 +inf, 0 -inf" in capsys.readouterr().out
    assert main(["compare", path, path, "--equal-nan"]) == 0


def test_bfloat16_bits_are_numbers_when_declared(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", y=np.array([0x3F80], np.uint16))
    np.savez(tmp_path / "near.npz", y=np.array([0x3F81], np.uint16))
    files = [str(tmp_path / "one.npz"), str(tmp_path / "near.npz")]
    assert main(["compare", *files]) == 1
    assert main(["compare", *files, "--bf16", "y"]) == 0


def test_a_name_for_bfloat16_that_is_no_output_is_refused(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *files, "--bf16", "z"]) == 2
    assert "there is no output 'z'" in capsys.readouterr().err


def test_notes_are_announced_in_the_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "a.npz", y=np.array([1e-6], np.float32))
    np.savez(tmp_path / "b.npz", y=np.array([5e-6], np.float32))
    assert main(["compare", str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]) == 0
    shown = capsys.readouterr().out
    assert "note: atol 0.0001 is more than any expected value" in shown
    assert "read the note above" in shown


def test_names_with_markup_are_shown_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "a.npz")
    np.savez(path, **{"[bold]y[/]": np.ones(1)})  # type: ignore[arg-type]
    assert main(["compare", path, path]) == 0
    assert "[bold]y[/]" in capsys.readouterr().out


def test_explain_prints_the_rules_and_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--explain"]) == 0
    shown = capsys.readouterr().out
    assert "|actual - expected| <= atol + rtol * |expected|" in shown
    rows = [line.split()[:3] for line in shown.splitlines() if line.strip()]
    assert ["float32", "0.0001", "0.0001"] in rows
    assert ["bfloat16", "0.01", "0.01"] in rows


def test_two_files_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "one.npz"]) == 2
    assert "tipcheck compare EXPECTED.npz ACTUAL.npz" in capsys.readouterr().err


def test_bad_files_end_in_one_line(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.npz"
    bad.write_bytes(Path(files[0]).read_bytes()[:300])
    for pair in ((str(bad), files[0]), (files[0], str(bad))):
        assert main(["compare", *pair]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "bad.npz" in error


def limited(megabytes: int, *argv: str) -> subprocess.CompletedProcess[str]:
    size = megabytes * 1024 * 1024

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (size, size))

    return subprocess.run(
        [sys.executable, "-m", "tipcheck", "compare", *argv],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )


@pytest.fixture(scope="module")
def large_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """Two equal files of 400 MB of zeros, and one that stores them in another order of axes."""
    folder = tmp_path_factory.mktemp("large")
    array = np.zeros((100, 1_000_000), np.float32)
    for name, stored in (("a", array), ("b", array), ("turned", array.T.copy().T)):
        np.savez_compressed(folder / f"{name}.npz", y=stored)
    return str(folder / "a.npz"), str(folder / "b.npz"), str(folder / "turned.npz")


@pytest.mark.slow
def test_files_larger_than_the_memory_are_compared(large_files: tuple[str, str, str]) -> None:
    ran = limited(400, *large_files[:2], "--json")
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    assert found["coverage"]["elements_compared"] == 100_000_000


@pytest.mark.slow
def test_too_little_memory_is_an_error_that_says_what_to_do(
    large_files: tuple[str, str, str],
) -> None:
    ran = limited(400, large_files[0], large_files[2])
    assert ran.returncode == 2
    assert "not enough memory" in ran.stderr
    assert "numpy.ascontiguousarray" in ran.stderr
    assert ran.stderr.count("\n") == 1
