"""Writes the op table to files: the spreadsheet, CSV and JSON.

Every file is written beside its place and moved there when it is whole, so that an interrupted run
leaves the older file rather than half a new one.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import tempfile
from typing import TYPE_CHECKING, Any

from tipcheck.errors import ToolError, UsageError
from tipcheck.report.debug_cells import COLUMNS, cells, severity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tipcheck.blame.table import Table

_SHEET, _SUMMARY = "Tensors", "Summary"
_WIDTHS = (28, 34, 26, 18, 12, 12, 24, 24, 9, 12, 12, 20, 44, 10, 8, 30, 60)
_FILL = {"bad": "#F8CBAD", "warn": "#FFE699", "quiet": "#EDEDED"}


def check_writable(path: Path, option: str) -> None:
    """Refuse a file that could not be written in the end, before any work is done.

    Raises:
        UsageError: its folder is missing or cannot be written to.
    """
    folder = path.absolute().parent
    if path.is_dir():
        raise UsageError("is a folder", where=str(path), hint=f"give a file name after {option}")
    if not folder.is_dir():
        raise UsageError(
            "its folder does not exist", where=str(path), hint=f"type mkdir -p {folder} first"
        )
    if not _can_write(path if path.exists() else folder):
        raise UsageError(
            "cannot be written", where=str(path), hint=f"give another file after {option}"
        )


def _can_write(place: Path) -> bool:
    """Try it: not every place that lets itself be written to takes a new file."""
    if not os.access(place, os.W_OK):
        return False
    try:
        with tempfile.TemporaryFile(dir=place if place.is_dir() else place.absolute().parent):
            return True
    except OSError:
        return False


def write_csv(table: Table, path: Path) -> None:
    """Write the rows, with the heading, as UTF-8 text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([cell.text for cell in row] for row in cells(table))
    _place(path, lambda file: file.write_text(text.getvalue(), encoding="utf-8"))


def write_json(table: Table, path: Path) -> None:
    """Write everything, in the documented schema."""
    from tipcheck import wire  # noqa: PLC0415 - only who writes JSON pays for it

    text = wire.dumps(table) + "\n"
    _place(path, lambda file: file.write_text(text, encoding="utf-8"))


def write_xlsx(table: Table, path: Path) -> None:
    """Write the spreadsheet: the rows on the first sheet, the summary on the second.

    Raises:
        ToolError: the file cannot be written.
    """
    import xlsxwriter  # noqa: PLC0415 - only who writes a spreadsheet pays for it
    from xlsxwriter.exceptions import XlsxFileError  # noqa: PLC0415

    def write(file: Path) -> None:
        # Text that looks like a formula or an address is a tensor's name, not a formula.
        options = {"strings_to_formulas": False, "strings_to_urls": False}
        try:
            with xlsxwriter.Workbook(str(file), options) as book:
                _write_rows(book, table)
                _write_summary(book, table)
        except XlsxFileError as error:
            raise OSError(str(error)) from None

    _place(path, write)


def _write_rows(book: Any, table: Table) -> None:  # noqa: ANN401 - the library has no types
    sheet = book.add_worksheet(_SHEET)
    styles = _Styles(book)
    for column, (title, width) in enumerate(zip(COLUMNS, _WIDTHS, strict=True)):
        sheet.set_column(column, column, width)
        sheet.write_string(0, column, title, styles.heading)
    rows = cells(table)
    for line, (row, shown) in enumerate(zip(table.rows, rows, strict=True), start=1):
        level = severity(row)
        for column, cell in enumerate(shown):
            style = styles.of(level, cell.form)
            if cell.number is None:
                sheet.write_string(line, column, cell.text, style)
            else:
                sheet.write_number(line, column, cell.number, style)
    sheet.freeze_panes(1, 2)
    sheet.autofilter(0, 0, max(len(rows), 1), len(COLUMNS) - 1)
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)


def _write_summary(book: Any, table: Table) -> None:  # noqa: ANN401
    sheet = book.add_worksheet(_SUMMARY)
    styles = _Styles(book)
    sheet.set_column(0, 0, 28)
    sheet.set_column(1, 1, 120)
    for line, (name, text, level) in enumerate(summary(table)):
        title = name and not text
        sheet.write_string(line, 0, name, styles.heading if title else styles.of("", ""))
        sheet.write_string(line, 1, text, styles.of(level, ""))


def summary(table: Table) -> list[tuple[str, str, str]]:
    """Return the lines of the summary: name, text, and how it is coloured."""
    level = {"PASS": "", "SUSPECT": "warn", "UNSUPPORTED": "quiet"}.get(table.status.value, "bad")
    covered = table.coverage
    lines = [
        ("Verdict", table.status.value, level),
        ("What it says", table.sentence, level),
        ("Model", table.model, ""),
        ("Run mode", table.run_mode, ""),
        ("Baseline", table.baseline, ""),
        ("Baseline model", table.baseline_model, ""),
        ("Complete", "yes" if table.complete else "no: the run ended early", ""),
        ("Coverage", "", ""),
        ("Floating tensors", str(covered.tensors), ""),
        ("Asked for", str(covered.chosen), ""),
        ("Matched", str(covered.matched), ""),
        ("Compared", str(covered.judged), ""),
        ("With introduced error", str(covered.replayed), ""),
        ("Elements compared", f"{covered.elements:,}", ""),
        ("Samples", str(covered.samples), ""),
        ("Observation", "", ""),
        ("Outputs unchanged by it", "yes" if table.probe.unchanged else "no", ""),
        ("What was compared", table.probe.reason, ""),
        ("Culprits", "", ""),
        *((f"{at}. {item.op_type}", item.evidence, "bad") for at, item in _numbered(table)),
        ("Final outputs", "", ""),
        *((item.name, f"{item.status.value}: {item.reason}", "") for item in table.outputs),
        ("Thresholds", "", ""),
        *((name, text, "") for name, text in table.thresholds.items()),
        ("Versions", "", ""),
        *((name, text, "") for name, text in table.versions.items()),
        ("In the baseline only", "", ""),
        *((item.op_type, f"{item.reason}: {item.note}", "quiet") for item in table.unmatched),
    ]
    if table.notes:
        lines += [("Notes", "", ""), *(("", note, "") for note in table.notes)]
    return lines


def _numbered(table: Table) -> list[tuple[int, Any]]:
    return list(enumerate(table.culprits, start=1))


class _Styles:
    """The formats of a workbook, each made once."""

    def __init__(self, book: Any) -> None:  # noqa: ANN401
        self._book = book
        self._made: dict[tuple[str, str], Any] = {}
        self.heading = book.add_format(
            {"bold": True, "bg_color": "#D9E1F2", "bottom": 1, "text_wrap": False}
        )

    def of(self, level: str, form: str) -> Any:  # noqa: ANN401
        if (level, form) not in self._made:
            options: dict[str, object] = {"num_format": form} if form else {}
            if level:
                options["bg_color"] = _FILL[level]
            self._made[level, form] = self._book.add_format(options)
        return self._made[level, form]


def _place(path: Path, write: Callable[[Path], object]) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(part)
        part.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ToolError(f"cannot be written ({reason})", where=str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
