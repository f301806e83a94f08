"""Write a check of the export behind each paddle.jit.save of a source file.

The five lines compare the layer with Paddle Inference and raise where they differ, so that the
export fails. The change is shown as a diff; --undo takes it back to the byte.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_GOOD, ToolError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tipcheck.backends.source_patch.edit import Source


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="Python files with a jit.save in them")
    add("--undo", action="store_true", help="take the checks out again")
    add("--dry-run", action="store_true", help="show the diff and write nothing")
    add(
        "--export_file", type=Path, action="append", default=[], metavar="FILE",
        help="another way to name a file",
    )  # fmt: skip
    add("--layer", metavar="EXPR", help="what is saved, if the call does not say it")
    add("--path", metavar="EXPR", help="where to, if the call does not say it")
    add(
        "--image_shape", metavar="EXPR",
        help="shape of the input without the batch dimension, or full specs",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Show the diff, write the files, and say what was done."""
    try:
        from tipcheck.backends.source_patch import edit
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        raise UsageError(
            "tipcheck patch needs libcst, which is not installed",
            hint="pip install libcst",
        ) from None
    files = [*options.files, *options.export_file]
    if not files:
        raise UsageError("no file is named", hint="tipcheck patch ppcls/engine/engine.py")
    _check_expressions(options)
    words = edit.Words(options.layer, options.path, options.image_shape)
    changes = []
    for file in files:
        before = edit.decode(_read(file), str(file))
        if options.undo:
            after, count = edit.unpatched(before)
        else:
            after, count = edit.patched(before, words, str(file))
        changes.append((file, before, after, count))
    for file, before, after, _ in changes:
        if before != after:
            print(edit.difference(before, after, str(file)))
    if not options.dry_run:
        _write(changes, undo=options.undo)
    _conclude(changes, options)
    return EXIT_GOOD


def _check_expressions(options: argparse.Namespace) -> None:
    import ast

    for name in ("layer", "path", "image_shape"):
        text = getattr(options, name)
        if text is None:
            continue
        try:
            ast.parse(text, mode="eval")
        except SyntaxError:
            raise UsageError(
                f"--{name} is no Python expression: {text}", hint=f'such as --{name} "self.x[0]"'
            ) from None


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(file)) from None


Change = tuple[Path, "Source", "Source", int]


def _write(changes: Sequence[Change], *, undo: bool) -> None:
    from tipcheck.backends.source_patch.places import places_for, put_module, take_module

    for file, before, after, _ in changes:
        if before != after:
            _replace(file, after.encode())
    folders = dict.fromkeys(place for file, *_ in changes for place in places_for(file))
    for folder in folders:
        if undo:
            if take_module(folder):
                print(f"removed {folder / 'check_inference.py'}")
            continue
        try:
            problem = put_module(folder)
        except OSError as error:
            raise ToolError(f"cannot be written: {error.strerror}", where=str(folder)) from None
        print(problem or f"wrote   {folder / 'check_inference.py'}")


def _replace(file: Path, data: bytes) -> None:
    """Write a file whole or not at all; it keeps its mode, and stays where a link points to."""
    target = file.resolve()
    partly = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        partly.write_bytes(data)
        partly.chmod(target.stat().st_mode & 0o7777)
        partly.replace(target)
    except OSError as error:
        partly.unlink(missing_ok=True)
        raise ToolError(f"cannot be written: {error.strerror}", where=str(file)) from None


def _conclude(changes: Sequence[Change], options: argparse.Namespace) -> None:
    for file, _, _, count in changes:
        saves = "1 save" if count == 1 else f"{count} saves"
        if options.undo:
            told = f"{saves} no longer checked" if count else "holds no check of tipcheck's"
        elif not count:
            told = "every save is checked already"
        else:
            told = f"{saves} checked from now on"
        print(f"{file}: {told}{' (nothing was written)' if options.dry_run else ''}")
