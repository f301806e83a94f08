"""Compare two executions of a model tensor by tensor, and name the op that introduced a difference.

The model is run in --run-mode and in the baseline (by default without any optimisation). Every
tensor of the first is held against the one of the second that is the same mathematical value, and
against what the op should have made of its own inputs, computed in float64: who introduces an error
is told apart from who only passes it on. Exit code 1 when the final outputs are not right.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD, ToolError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from tipcheck.blame.table import Table

    File = tuple[str, Path, Callable[[Table, Path], None]]

_OUTPUT = Path("output.xlsx")
_INTERRUPTED = 130


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    from tipcheck.cli.debug_options import add_options

    add_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run, write the files, show the table, and return the exit code."""
    from tipcheck.cli.debug_options import question_of
    from tipcheck.report.debug_files import check_writable
    from tipcheck.report.debug_view import show_table
    from tipcheck.report.terminal import waiting

    files = _files(options)
    for option, path, _ in files:
        check_writable(path, option)
    if options.save_golden:
        check_writable(options.save_golden, "--save-golden")
    with tempfile.TemporaryDirectory(prefix="tipcheck-") as folder:
        question = question_of(options, Path(folder))
        with waiting("starting") as say:
            if options.save_golden:
                from tipcheck.blame.golden import record

                if question.golden:
                    raise UsageError("a golden file is recorded from a run", hint="give a run mode")
                record(question, options.save_golden, say)
                print(f"wrote {options.save_golden}", file=sys.stderr)
                return EXIT_GOOD
            from tipcheck.blame.debugging import investigate

            table = investigate(question, say)
    show_table(table, rows=options.rows)
    failures = [told for told in (_written(table, file) for file in files) if told]
    if failures:
        raise _kept(table, failures)
    return _code(table, options)


def _written(table: Table, file: File) -> ToolError | None:
    """Write one file; what keeps it from being written must not keep the next one."""
    _, path, write = file
    try:
        write(table, path)
    except ToolError as failure:
        return failure
    print(f"wrote {path}", file=sys.stderr)
    return None


def _kept(table: Table, failures: list[ToolError]) -> ToolError:
    """Keep a result that could not be written where it was wanted, and say where it is."""
    from tipcheck.report.debug_files import write_json

    first = failures[0]
    kept = Path(tempfile.gettempdir()) / f"tipcheck-debug-{os.getpid()}.json"
    try:
        write_json(table, kept)
    except ToolError:
        return first
    return ToolError(first.what, where=first.where, hint=f"the table is kept in {kept}")


def _files(options: argparse.Namespace) -> list[File]:
    from tipcheck.report.debug_files import write_csv, write_json, write_xlsx

    files: list[File] = []
    for option, path, write in (
        ("--xlsx", options.xlsx, write_xlsx),
        ("--json", options.json, write_json),
        ("--csv", options.csv, write_csv),
    ):
        if path is not None:
            files.append((option, path, write))
    if not files and not options.save_golden:
        files = [("--xlsx", _OUTPUT, write_xlsx)]
    return files


def _code(table: Table, options: argparse.Namespace) -> int:
    if not table.complete:
        return _INTERRUPTED if "interrupted" in " ".join(table.notes) else EXIT_CHECK_FAILED
    if table.status.value == "PASS":
        return EXIT_GOOD
    if table.status.value == "SUSPECT" and "suspect" in options.allow:
        return EXIT_GOOD
    return EXIT_CHECK_FAILED
