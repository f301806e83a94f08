"""Gold files against logs: the rules of ``compare_results.py``, without its silences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tipcheck.step_runner.gold import FOLDER, Gold, compare, gold_of

GOLD = "a.jpg\t[[1.0, 2.0], [3.0, 4.0]]\nfolder/b.jpg\t10 20 30 40 50 60 70 80\n"
LOG = """\
[2026/11/18] root INFO: loading a.jpg
[2026/11/18] root INFO: a.jpg\t[[1.0004, 2.0], [3.0, 4.0]]
xa.jpg\t[[9, 9], [9, 9]]
b.jpg\t10 20 30 40 50 60 70 80
"""


def against(folder: Path, gold: str, log: str, *, name: str = "python_m_fp32.txt") -> str:
    file = folder / name
    file.write_text(gold)
    text = folder / "python_infer_cpu_precision_fp32.log"
    text.write_text(log)
    return compare(Gold((file,)), text).failure


def test_close_values_are_as_good_as_gold(tmp_path: Path) -> None:
    (tmp_path / "m_results.txt").write_text(GOLD)
    (tmp_path / "infer.log").write_text(LOG)
    told = compare(Gold((tmp_path / "m_results.txt",)), tmp_path / "infer.log")
    assert (told.failure, told.compared) == (
        "",
        "2 result(s) as in m_results.txt, within 0.001/0.001",
    )


@pytest.mark.parametrize(
    ("gold", "log", "failure"),
    [
        ("a\t[1.0]", "a [1.1]", "not as python_m_fp32.txt says: a[0] is 1.1, gold 1.0"),
        ("a\t[1.0]", "a [1.0, 2.0]", "a has 2 entries, gold 1"),
        ("a\t[1.0]", "b [1.0]", "the log does not hold a"),
        ("1.jpg\t[1.0]", "11.jpg [1.0]", "the log does not hold 1.jpg"),
        ("a\t[1.0]", "a is a picture", "the log holds a without a value"),
        ("a\t1 2 3 4", "a 1 2 3 9", "a[0][3] is 9, gold 4"),
        ("a\t1 2 3", "a 1 2 3", "line 1 is neither JSON nor whole numbers in rows of four"),
        ("a\tword", "a word", "line 1 is neither JSON nor whole numbers in rows of four"),
        ("a\t", "a ", "line 1 is neither JSON nor whole numbers in rows of four"),
        ("a [1.0]", "a [1.0]", "line 1 is not NAME<tab>VALUE"),
        ("a\t1\na\t1", "a 1", "line 2 gives a again"),
        ("\n", "a [1.0]", "it has no line"),
        ("a\tNaN", "a 1.0", "a is 1.0, gold nan"),
        ("a\tInfinity", "a 1.0", "a is 1.0, gold inf"),
        ("a\t1.0", "a Infinity", "a is inf, gold 1.0"),
        ('a\t["text", 0.9]', 'a ["tex", 0.9]', "a[0] is 'tex', gold 'text'"),
        ('a\t{"x": 1}', 'a {"x": 2}', "a['x'] is 2, gold 1"),
        ('a\t{"x": 1}', 'a {"y": 1}', "a is {'y': 1}, gold {'x': 1}"),
        ('a\t"' + "long" * 40 + '"', 'a "short"', "gold 'longlong"),
    ],
)
def test_what_is_not_as_good_as_gold(tmp_path: Path, gold: str, log: str, failure: str) -> None:
    assert failure in against(tmp_path, gold, log)


@pytest.mark.parametrize(
    ("gold", "log"),
    [("a\tNaN", "a NaN"), ("a\t-Infinity", "a -Infinity"), ('a\t["x", null]', 'a ["x", null]')],
)
def test_values_that_are_the_same(tmp_path: Path, gold: str, log: str) -> None:
    assert against(tmp_path, gold, log) == ""


def test_gold_of_another_precision_only(tmp_path: Path) -> None:
    failure = against(tmp_path, "a\t[1.0]", "a [1.0]", name="python_m_int8.txt")
    assert failure == "no gold file for fp32 (there are: int8)"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    file, log = tmp_path / "m_fp16.txt", tmp_path / "infer_fp16.log"
    assert compare(Gold((file,)), log).failure.startswith("its log cannot be read")
    log.write_text("a 1")
    assert "gold file m_fp16.txt cannot be used" in compare(Gold((file,)), log).failure


def test_the_gold_of_a_model_is_found_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    for name in ("python_ppocr_det_mobile_results_fp32.txt", "python_other_fp32.txt", "notes.md"):
        (folder / name).write_text("a\t1")
    assert [file.name for file in gold_of(tmp_path, "PPOCR-det.mobile")] == [
        "python_ppocr_det_mobile_results_fp32.txt"
    ]
    assert gold_of(tmp_path, "ocr_rec") == gold_of(tmp_path, "") == ()
