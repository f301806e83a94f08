"""Print a script that completes tipcheck's commands and options when TAB is pressed.

bash: tipcheck completion bash > ~/.local/share/bash-completion/completions/tipcheck
zsh:  tipcheck completion zsh > a folder of $fpath, as _tipcheck
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from tipcheck import __version__
from tipcheck.cli.commands import COMMANDS
from tipcheck.errors import EXIT_GOOD


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    import shtab

    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    print(shtab.complete(whole_parser(), options.shell))
    return EXIT_GOOD


def whole_parser() -> argparse.ArgumentParser:
    """Return one parser that knows every command; only completion needs them all at once."""
    parser = argparse.ArgumentParser(prog="tipcheck")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="COMMAND")
    for command in COMMANDS:
        module = importlib.import_module(command.module)
        one = commands.add_parser(command.name, help=command.summary)
        module.configure(one)
        _complete_files(one)
    return parser


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Let every argument that is a path be completed as one."""
    import shtab

    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
