"""Starts the command line as users do, from a source tree: ``python tool.py run ...``."""

from typing import Any

from tipcheck.cli import main as command_line
from tipcheck.cli.commands import COMMANDS, Command

if all(command.name != "run" for command in COMMANDS):
    module: Any = command_line
    module.COMMANDS = (*COMMANDS, Command("run", "tipcheck.cli.run", "run a chain"))

if __name__ == "__main__":
    command_line.entry()
