"""Awkward values through the command line, with files: the verdict a numerics expert would give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tipcheck import wire
from tipcheck.cli.main import main
from tipcheck.compare import Comparison, Status

Array = npt.NDArray[Any]

PASS, FAIL, REFUSED = 0, 1, 2
NAN, INF = np.nan, np.inf
EXACT = ("--rtol", "0", "--atol", "0")
QUIET_NAN, OTHER_NAN = (np.array([bits], "u4").view("f4") for bits in (0x7FC00001, 0xFFC12345))
LONG = np.longdouble


def like(dtype: str, *values: Any) -> Array:
    return np.array(values, dtype)


CASES: dict[str, tuple[Array, Array, int, tuple[str, ...]]] = {
    # Integers and booleans are exact, whatever the tolerance.
    "uint8 from one end to the other": (like("u1", 0), like("u1", 255), FAIL, ("--atol", "300")),
    "uint64 at its end": (like("u8", 2**64 - 1), like("u8", 2**64 - 2), FAIL, ()),
    "uint64 at its end, equal": (like("u8", 2**64 - 1), like("u8", 2**64 - 1), PASS, ()),
    "int64 from end to end": (like("i8", -(2**63)), like("i8", 2**63 - 1), FAIL, ()),
    "int64 beyond float64": (like("i8", 2**53), like("i8", 2**53 + 1), FAIL, ("--rtol", "1")),
    "int8 wraps": (like("i1", -128), like("i1", 127), FAIL, ()),
    "signed and unsigned": (like("i8", 1), like("u8", 1), FAIL, ()),
    "bool and uint8": (like("?", 1), like("u1", 1), FAIL, ()),
    "byte order of integers": (like(">i4", 1, 256), like("<i4", 1, 256), PASS, ()),
    "byte order hides a change": (like(">i4", 1, 256), like("<i4", 1, 65536), FAIL, ()),
    # Complex numbers, in both parts.
    "imaginary part": (like("c8", 1 + 2j), like("c8", 1 + 3j), FAIL, ()),
    "conjugate": (like("c16", 1 + 2j), like("c16", 1 - 2j), FAIL, ()),
    "NaN changes its part": (
        like("c8", complex(1, NAN)), like("c8", complex(NAN, 1)), FAIL, ("--equal-nan",),
    ),
    "NaN beside another number": (
        like("c8", complex(1, NAN)), like("c8", complex(2, NAN)), FAIL, ("--equal-nan",),
    ),
    "complex and huge": (like("c16", 1e308 + 1e308j), like("c16", -1e308 - 1e308j), FAIL, ()),
    "complex and huge, equal": (like("c16", 1.7e308 + 1.7e308j),) * 2 + (PASS, ()),
    # Text, dates, and what cannot be compared.
    "text of another width": (like("U1", "a"), like("U9", "a"), PASS, ()),
    "bytes and text": (like("S1", b"a"), like("U1", "a"), FAIL, ()),
    "unit of a date": (like("M8[D]", "2020-01-01"), like("M8[s]", "2020-01-01"), FAIL, ()),
    "no date on one side": (
        like("M8[D]", "NaT"), like("M8[D]", "2020-01-01"), FAIL, ("--equal-nan",),
    ),
    "structured": (np.zeros(2, [("a", "f4")]),) * 2 + (REFUSED, ()),
    "objects": (like("O", 1, None),) * 2 + (REFUSED, ()),
    # Zero, denormals, and the smallest tolerances.
    "negative zero": (like("f4", 0.0), like("f4", -0.0), PASS, EXACT),
    "one bit": (like("f4", 1.5), np.nextafter(like("f4", 1.5), like("f4", 2)), FAIL, EXACT),
    "denormal float32 vanishes": (like("f4", 1e-45), like("f4", 0), FAIL, ("--atol", "0")),
    "denormal float64 doubles": (like("f8", 5e-324), like("f8", 1e-323), FAIL, EXACT),
    "denormal float16 vanishes": (like("f2", 6e-8), like("f2", 0), FAIL, ("--atol", "0")),
    "atol below float32": (like("f4", 1e-45), like("f4", 0), FAIL, ("--atol", "1e-46", *EXACT[:2])),
    "on the line": (like("f8", 1), like("f8", 1.5), PASS, ("--rtol", "0.5", "--atol", "0")),
    "over the line": (
        like("f8", 1), np.nextafter(like("f8", 1.5), 2), FAIL, ("--rtol", "0.5", "--atol", "0"),
    ),
    "rtol is of the expected side": (
        like("f8", 1), like("f8", 2), FAIL, ("--rtol", "0.6", "--atol", "0"),
    ),
    "and not of the actual one": (
        like("f8", 2), like("f8", 1), PASS, ("--rtol", "0.6", "--atol", "0"),
    ),
    # Where differences, products and squares overflow.
    "float16 overflows": (like("f2", 65504), like("f2", INF), FAIL, ()),
    "float32 from end to end": (like("f4", 3.4e38), like("f4", -3.4e38), FAIL, ()),
    "float64 from end to end": (like("f8", 1.7e308), like("f8", -1.7e308), FAIL, ()),
    "within a huge rtol": (like("f8", 1.7e308), like("f8", -1.7e308), PASS, ("--rtol", "2")),
    "beyond a huge rtol": (like("f8", 1.7e308), like("f8", -1.7e308), FAIL, ("--rtol", "1.9")),
    "rtol beyond float32": (
        like("f4", 0, 1), like("f4", 5, 1), FAIL, ("--rtol", "1e39", "--atol", "0"),
    ),
    "atol beyond float32": (like("f4", 0, 1), like("f4", 5, 1), PASS, ("--atol", "1e39")),
    "longdouble beyond float64": (like("g", LONG("1e4000")), like("g", LONG("2e4000")), FAIL, ()),
    "longdouble beyond float64, equal": (like("g", LONG("1e4000")),) * 2 + (PASS, ()),
    "longdouble from end to end": (
        like("g", LONG("1.1e4932")), like("g", LONG("-1.1e4932")), FAIL, ("--rtol", "9"),
    ),
    "longdouble below float64": (like("g", LONG("1e-4900")), like("g", 0), FAIL, ("--atol", "0")),
    "one bit of a longdouble": (
        like("g", 1), like("g", 1 + np.finfo(LONG).eps), FAIL, EXACT,
    ),
    "long complex": (like("G", 1 + 1j), like("G", 1 + 2j), FAIL, ()),
    # NaN and infinity.
    "payload of a NaN": (QUIET_NAN, OTHER_NAN, PASS, ("--equal-nan",)),
    "NaN against infinity": (like("f4", NAN), like("f4", INF), FAIL, ("--equal-nan",)),
    "NaN elsewhere": (like("f4", NAN, 1), like("f4", 1, NAN), FAIL, ("--equal-nan",)),
    "infinity against the largest": (like("f4", INF), like("f4", 3.4e38), FAIL, ("--rtol", "1")),
    "infinities of two signs": (like("f4", INF), like("f4", -INF), FAIL, ("--rtol", "10")),
    # Shapes and memory.
    "no axis": (np.array(1.5, "f4"), np.array(1.5, "f4"), PASS, ()),
    "no axis against one": (np.array(1.5, "f4"), like("f4", 1.5), FAIL, ()),
    "no elements": (np.zeros((0, 3)), np.zeros((0, 3)), FAIL, ()),
    "no elements, another shape": (np.zeros((0, 3)), np.zeros((3, 0)), FAIL, ()),
    "order of memory": (np.eye(3, 4), np.asfortranarray(np.eye(3, 4)), PASS, ()),
    "order of memory hides a change": (np.eye(4, k=1), np.asfortranarray(np.eye(4).T), FAIL, ()),
    "byte order of floats": (like(">f8", 1, 2), like("<f8", 1, 2), PASS, ()),
    # bfloat16.
    "bfloat16, big-endian": (like(">u2", 0x3F80), like("<u2", 0x3F81), PASS, ("--bf16", "y")),
    "bfloat16, two signs of zero": (like("u2", 0x8000), like("u2", 0), PASS, ("--bf16", "*")),
    "bfloat16, largest": (like("u2", 0x7F7F), like("u2", 0xFF7F), FAIL, ("--bf16", "y")),
    "bfloat16, NaN": (like("u2", 0x7FC0), like("u2", 0x7FC1), FAIL, ("--bf16", "y")),
    "bfloat16, of no output": (like("u2", 1), like("u2", 1), REFUSED, ("--bf16", "z")),
    "bfloat16, of four bytes": (like("f4", 1), like("f4", 1), REFUSED, ("--bf16", "y")),
    # Tolerances that are none.
    "rtol negative": (like("f4", 1), like("f4", 1), REFUSED, ("--rtol=-1e-4",)),
    "rtol negative, apart": (like("f4", 1), like("f4", 1), REFUSED, ("--rtol", "-1e-4")),
    "atol NaN": (like("f4", 1), like("f4", 1), REFUSED, ("--atol", "nan")),
    "atol infinite": (like("f4", 1), like("f4", 2), REFUSED, ("--atol", "inf")),
    "atol no number": (like("f4", 1), like("f4", 1), REFUSED, ("--atol", "small")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gives_the_right_verdict(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected, actual, code, options = CASES[name]
    files = [str(tmp_path / "expected.npz"), str(tmp_path / "actual.npz")]
    for file, array in zip(files, (expected, actual), strict=True):
        np.savez(file, y=array)
    assert main(["compare", *files, *options]) == code
    shown = capsys.readouterr()
    assert main(["compare", *files, *options, "--json"]) == code
    text = capsys.readouterr().out
    if code == REFUSED:
        assert (shown.out, text) == ("", "")
        assert shown.err.splitlines()[-1].startswith("tipcheck")
    else:
        assert shown.err == ""
        verdict = wire.loads(text, Comparison)
        assert (verdict.status is Status.PASS) == (code == PASS)
        assert json.loads(text)["tensors"][0]["name"] == "y"


def test_measures_of_huge_numbers_are_still_measures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / "expected.npz"), str(tmp_path / "actual.npz")]
    np.savez(files[0], y=np.array([1.7e308, 1e308]))
    np.savez(files[1], y=np.array([-1.7e308, 1e308]))
    main(["compare", *files, "--json"])
    measures = wire.loads(capsys.readouterr().out, Comparison).tensors[0].measures
    assert measures is not None
    assert measures.max_abs == INF  # 3.4e308 is no float
    assert measures.max_abs_over_rms == pytest.approx(3.4 / np.hypot(1.7, 1) * np.sqrt(2))
    assert measures.sqnr_db == pytest.approx(20 * np.log10(np.hypot(1.7, 1) / 3.4))
    assert measures.tolerance_used == pytest.approx(3.4 / 1.7e-7)
