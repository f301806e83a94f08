from __future__ import annotations

import csv
import io
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.blame.tables import row, table
from tipcheck import wire
from tipcheck.blame.table import Table
from tipcheck.errors import ToolError, UsageError
from tipcheck.report.debug_cells import COLUMNS, cells, severity
from tipcheck.report.debug_files import check_writable, summary, write_csv, write_json, write_xlsx
from tipcheck.report.debug_view import show_table
from tipcheck.report.terminal import terminal


def shown(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_the_first_columns_and_their_forms_are_those_of_the_public_script() -> None:
    assert COLUMNS[:8] == (
        "Operator Type",
        "Tensor Name",
        "Shape",
        "Mismatched Elements",
        "Max Atol",
        "Max Rtol",
        "Min Val(base)",
        "Max Val(base)",
    )
    first = [cell.text for cell in cells(table())[0]][:9]
    assert first[2:4] == ["match, [1,64,112,112]", "0/802816"]
    assert first[5:] == ["0.021647", "-1.157186(-1.157185)", "1.551287(1.551287)", "128.4"]


def test_a_small_number_is_never_shown_as_zero() -> None:
    texts = {cell.text for line in cells(table()) for cell in line}
    assert "2.500E-07" in texts
    assert "1.000E-12" in texts
    assert cells(table())[0][4].text == "1.000E-06"


def test_a_nan_is_counted_among_the_elements_that_do_not_match() -> None:
    assert cells(table())[4][3].text == "7/802816"


def test_a_row_without_partner_says_so() -> None:
    line = [cell.text for cell in cells(table())[5]]
    assert line[2] == "no baseline, [1,64,112,112]"
    assert line[3] == "-"
    assert severity(table().rows[5]) == "quiet"


def test_a_shape_that_is_not_the_baselines_stands_beside_it() -> None:
    assert cells(table())[8][2].text == "mismatch, [1,64,112,112]([64])"


def test_csv_holds_every_row(tmp_path: Path) -> None:
    write_csv(table(), tmp_path / "t.csv")
    lines = shown(tmp_path / "t.csv")
    assert lines[0] == list(COLUMNS)
    assert len(lines) == len(table().rows) + 1
    assert lines[7][1] == 'odd "name", =SUM(A1)'


def test_the_json_can_be_read_back(tmp_path: Path) -> None:
    write_json(table(), tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text(encoding="utf-8")
    assert wire.loads(text, Table) == table()


def test_the_spreadsheet_has_both_sheets_a_frozen_head_and_filters(tmp_path: Path) -> None:
    write_xlsx(table(), tmp_path / "t.xlsx")
    with zipfile.ZipFile(tmp_path / "t.xlsx") as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
        names = book.read("xl/workbook.xml").decode()
    assert 'state="frozen"' in sheet
    assert f'<autoFilter ref="A1:Q{len(table().rows) + 1}"' in sheet
    assert 'name="Tensors"' in names
    assert 'name="Summary"' in names
    assert "<f>" not in sheet  # no text became a formula


def test_the_summary_says_what_was_run_and_what_came_out() -> None:
    lines = {name: text for name, text, _ in summary(table())}
    assert lines["Verdict"] == "FAIL"
    assert lines["Run mode"] == "onednn_fp32"
    assert lines["paddlepaddle"] == "3.3.1"
    assert lines["float32"] == "129 dB"
    assert lines["Matched"] == "9"


@pytest.mark.slow
def test_a_spreadsheet_program_makes_the_same_csv_of_it(tmp_path: Path) -> None:
    soffice = shutil.which("soffice")
    if soffice is None:
        pytest.skip("LibreOffice is not installed here")
    write_xlsx(table(), tmp_path / "t.xlsx")
    write_csv(table(), tmp_path / "ours.csv")
    home = f"-env:UserInstallation=file://{tmp_path / 'profile'}"
    command = [
        soffice,
        home,
        "--headless",
        "--convert-to",
        "csv:Text - txt - csv (StarCalc):44,34,76",
    ]
    subprocess.run(
        [*command, "--outdir", str(tmp_path), str(tmp_path / "t.xlsx")],
        check=True,
        capture_output=True,
        timeout=300,
    )
    assert shown(tmp_path / "t.csv") == shown(tmp_path / "ours.csv")


def test_a_file_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mkdir -p"):
        check_writable(tmp_path / "none" / "t.xlsx", "--xlsx")
    with pytest.raises(UsageError, match="is a folder"):
        check_writable(tmp_path, "--xlsx")
    check_writable(tmp_path / "t.xlsx", "--xlsx")


def test_writing_that_fails_is_an_error_and_leaves_the_older_file(tmp_path: Path) -> None:
    old = tmp_path / "t.csv"
    old.write_text("old", encoding="utf-8")
    (tmp_path / f".t.csv.{__import__('os').getpid()}.part").mkdir()
    with pytest.raises(ToolError, match="cannot be written"):
        write_csv(table(), old)
    assert old.read_text(encoding="utf-8") == "old"


def test_the_terminal_shows_rows_culprit_and_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(table(), terminal())
    text = capsys.readouterr().out
    assert "fused_conv2d" in text
    assert "it introduces an error of its own" in text
    assert "FAIL  output y is not what the baseline gives" in text
    assert "note: the second sample is worse" in text
    show_table(table(), terminal(), rows="none")
    assert "128.4" not in capsys.readouterr().out


def test_bad_rows_only(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(table(), terminal(), rows="bad")
    text = capsys.readouterr().out
    assert "fused_conv2d:1" in text
    assert "fused_conv2d:3" not in text
    assert severity(row(0)) == ""
