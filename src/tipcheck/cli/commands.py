"""The list of subcommands, as data, so that ``tipcheck --help`` imports none of them.

A command is a module of this package with two functions: ``configure(parser)`` adds its arguments,
``run(options)`` does its work and returns the exit code. A new command is one module and one line
here.
"""

from __future__ import annotations


class Command:
    """One subcommand: its name, the module that holds it, and its line in the help.

    A plain class: importing ``dataclasses`` or ``typing`` would double the time of ``--help``.
    """

    __slots__ = ("module", "name", "summary")

    def __init__(self, name: str, module: str, summary: str) -> None:
        self.name = name
        self.module = module
        self.summary = summary


COMMANDS: tuple[Command, ...] = (
    Command(
        "run",
        "tipcheck.cli.run",
        "run the train, eval, export, infer chains of TIPC configs",
    ),
    Command(
        "plan",
        "tipcheck.cli.plan",
        "show the steps that a TIPC config makes, and run nothing",
    ),
    Command(
        "lint",
        "tipcheck.cli.lint",
        "list the problems of TIPC configs, with the line and what to write instead",
    ),
    Command(
        "record",
        "tipcheck.cli.record",
        "write down what a repo's own bash chain would start, as a plan to run",
    ),
    Command(
        "init",
        "tipcheck.cli.init",
        "make the test_tipc folder of a model repo: configs, scripts, documents",
    ),
    Command(
        "prepare",
        "tipcheck.cli.prepare",
        "run the repo's own prepare.sh for a config, and believe its failure",
    ),
    Command(
        "lite-data",
        "tipcheck.cli.lite_data",
        "make a small data set for the lite modes out of a full one",
    ),
    Command(
        "docs",
        "tipcheck.cli.docs",
        "write the documents of a test_tipc folder from its configs and results",
    ),
    Command(
        "verify",
        "tipcheck.cli.verify",
        "run a model at every stage of its life and name the first where the answers change",
    ),
    Command(
        "selftest",
        "tipcheck.cli.selftest",
        "put known faults between two stages and say how many verify finds",
    ),
    Command(
        "compare",
        "tipcheck.cli.compare",
        "compare two .npz files of outputs, tensor by tensor",
    ),
    Command(
        "patch",
        "tipcheck.cli.patch",
        "write a check of the export behind each jit.save of a source file, or take it out",
    ),
    Command(
        "debug",
        "tipcheck.cli.debug",
        "compare two executions of a model tensor by tensor, and name the op at fault",
    ),
    Command(
        "doctor",
        "tipcheck.cli.doctor",
        "say what this machine can run, and what is missing for the rest",
    ),
    Command(
        "demo",
        "tipcheck.cli.demo",
        "run a small real Paddle model in several ways and compare the answers",
    ),
    Command(
        "completion",
        "tipcheck.cli.completion",
        "print the tab completion script for a shell",
    ),
)
