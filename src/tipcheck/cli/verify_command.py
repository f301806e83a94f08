"""``tipcheck verify -- COMMAND``: run a command as it was typed, and verify what it exports."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.cli.verify_forms import allowed, ladder_settings, watch_of, write_json
from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD

if TYPE_CHECKING:
    import argparse

    from tipcheck.stage_ladder.exports import ExportsReport, ExportVerdict


def run_command(options: argparse.Namespace, command: list[str]) -> int:
    """Run the command, verify, report on stderr; return the exit code."""
    from tipcheck.backends.capture.command import make_folder, run_watched
    from tipcheck.stage_ladder.exports import sum_up_exports
    from tipcheck.stage_ladder.verify_exports import SharedLinks, verify_exports

    watch = watch_of(options, wait=False)
    settings = ladder_settings(options, each=False)
    kept: Path | None = options.output
    base = make_folder(kept) if kept else Path(tempfile.mkdtemp(prefix="tipcheck-exports-"))
    folder = base / "captures"
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    good = False
    try:
        code = run_watched(command, folder, watch)
        exports: tuple[ExportVerdict, ...] = ()
        if any(folder.iterdir()):
            with SharedLinks() as links:
                exports = verify_exports(folder, shlex.join(command), settings, links)
        report = sum_up_exports(shlex.join(command), code, exports, allow=allowed(options))
        good = report.good
        _tell(report, options, base, kept=bool(kept) or bool(exports and not good))
    finally:
        if not kept and (good or not any(folder.glob("*/*/subject.json"))):
            shutil.rmtree(base, ignore_errors=True)
    if report.exit_code:
        return report.exit_code
    return EXIT_GOOD if report.good else EXIT_CHECK_FAILED


def _tell(report: ExportsReport, options: argparse.Namespace, base: Path, *, kept: bool) -> None:
    """Say what came of it, on stderr and in files: stdout is the command's."""
    from tipcheck import wire
    from tipcheck.report.exports_junit import write_junit
    from tipcheck.report.exports_table import show_exports
    from tipcheck.report.terminal import terminal

    console = terminal(stderr=True)
    show_exports(report, console)
    if kept:
        (base / "exports.json").write_text(wire.dumps(report) + "\n", encoding="utf-8")
        console.print(f"tipcheck: everything about it is in {base}", style="quiet", soft_wrap=True)
    if options.junit:
        write_junit([report], options.junit)
    if options.json:
        write_json(report, options.json)
