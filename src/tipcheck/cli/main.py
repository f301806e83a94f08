"""Entry of the ``tipcheck`` command: finds the subcommand, runs it, turns errors into exit codes.

``tipcheck --help`` is answered from the list of commands alone, so that it imports next to nothing.
"""

from __future__ import annotations

import gc
import sys

from tipcheck import __version__
from tipcheck.cli.commands import COMMANDS
from tipcheck.cli.streams import be_patient, lost
from tipcheck.errors import EXIT_GOOD, EXIT_USAGE, TipcheckError, UsageError

TYPE_CHECKING = False  # type checkers take it for true; importing typing would double the start
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from types import ModuleType
    from typing import NoReturn

    from tipcheck.cli.commands import Command

EXIT_INTERRUPTED = 130
EXIT_INTERNAL = 3
_YOUNG_OBJECTS = 100_000
"""New objects before rubbish is looked for. At Python's 700, a start spends a tenth of a second on
looking, and finds none: modules and profiles stay."""


def entry() -> None:
    """Run the command line of this process and end it with the right exit code."""
    be_patient()
    gc.set_threshold(_YOUNG_OBJECTS)
    code = main(sys.argv[1:])
    problem = lost()
    sys.exit(_complain(f"cannot write the output ({problem})", EXIT_INTERNAL) if problem else code)


def main(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        print(help_text())
        return EXIT_GOOD
    if argv[0] == "--version":
        print(f"tipcheck {__version__}")
        return EXIT_GOOD
    command = next((item for item in COMMANDS if item.name == argv[0]), None)
    if command is None:
        return _complain(unknown_command(argv[0]), EXIT_USAGE)
    return _guarded(command, argv[1:])


def help_text() -> str:
    """Return the answer to ``tipcheck --help``."""
    width = max(len(command.name) for command in COMMANDS)
    lines = [
        "usage: tipcheck COMMAND [ARGUMENTS]",
        "",
        "Prove that a PaddlePaddle model gives the same answers at every stage of its life,",
        "and name what broke it when it does not.",
        "",
        "commands:",
        *(f"  {command.name.ljust(width)}  {command.summary}" for command in COMMANDS),
        "",
        "options:",
        "  -h, --help  show this text; `tipcheck COMMAND --help` explains a command",
        "  --version   show the version",
        "",
        "exit codes: 0 all good, 1 a check failed, 2 wrong usage or config,",
        "            3 the tool or its environment failed",
    ]
    return "\n".join(lines)


def unknown_command(word: str) -> str:
    """Return what to say about a first word that is no command."""
    import difflib

    near = difflib.get_close_matches(word, [command.name for command in COMMANDS], n=1)
    hint = f"did you mean `tipcheck {near[0]}`?" if near else "`tipcheck --help` lists them"
    return f"there is no command {word!r}; {hint}"


def parser_for(command: Command, module: ModuleType) -> argparse.ArgumentParser:
    """Return the parser of one command."""
    import argparse

    class Parser(argparse.ArgumentParser):
        """Says on one line what is wrong, as everything else does."""

        def error(self, message: str) -> NoReturn:
            raise UsageError(message, hint=f"type `{self.prog} --help`")

    parser = Parser(
        prog=f"tipcheck {command.name}",
        description=(module.__doc__ or "").split("\n\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    return parser


def _guarded(command: Command, argv: Sequence[str]) -> int:
    import importlib

    try:
        module = importlib.import_module(command.module)
        split = getattr(module, "split_command", None)  # a command of the user's, behind `--`
        words, typed = split(argv) if split else (argv, None)
        options = parser_for(command, module).parse_args(words)
        if split:
            options.command = typed
        return int(module.run(options))
    except TipcheckError as error:
        return _complain(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _complain("interrupted", EXIT_INTERRUPTED)
    except SystemExit as stop:  # argparse: 0 after --help, 2 after wrong usage
        return stop.code if isinstance(stop.code, int) else EXIT_USAGE
    except Exception as error:  # noqa: BLE001 - the last resort: a bug must not look like a check
        return _complain(_internal(error), EXIT_INTERNAL)


def _internal(error: Exception) -> str:
    import tempfile
    import traceback

    told = " ".join(f"{type(error).__name__}: {error}".split())
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="tipcheck-bug-", suffix=".txt", delete=False
        ) as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return f"internal error: {told}; please report it"
    return f"internal error: {told}; please report it with {file.name}"


def _complain(message: str, code: int) -> int:
    line = " ".join(message.split("\n"))
    sys.stderr.write(f"tipcheck: error: {line}\n")
    return code
