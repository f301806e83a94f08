"""The forms of ``tipcheck verify`` that start something of the user's, and which of them is meant.

``verify -- COMMAND`` runs a command and verifies what it exports, ``--each PATTERN -- COMMAND``
does so for every config of a repo, and ``--train SOURCE`` trains a few steps in both ways.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import ToolError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tipcheck.backends.capture.command import Watch
    from tipcheck.stage_ladder.settings import Settings
    from tipcheck.wire import Contract

EACH_STAGES = ("inference_ir",)
"""Run for each config of a repo unless others are asked for: IR passes on, no oneDNN."""
KINDS = ("normal", "uniform")
"""Kinds of inputs that what a command exports is given, unless others are asked for."""


def split_command(argv: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Return the arguments before the first ``--``, and the command behind it; None without one."""
    words = list(argv)
    if "--" not in words:
        return words, None
    place = words.index("--")
    return words[:place], words[place + 1 :]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of these forms."""
    parser.set_defaults(command=None)
    group = parser.add_argument_group("a command of yours (verify [--each PATTERN] -- COMMAND ...)")
    add = group.add_argument
    add(
        "--each",
        metavar="PATTERN",
        help="run the command once for each config: a pattern in quotes, or a folder walked to the "
        "bottom; {} in the command stands for the config, {name} for its name without ending",
    )
    add("-j", "--jobs", type=int, metavar="N", help="configs at a time (default: by the cores)")
    add(
        "--engine",
        choices=("warm", "local"),
        default="warm",
        help="warm: scripts are forked from a process that has imported paddle (default)",
    )
    add(
        "--output",
        type=Path,
        metavar="DIR",
        help="folder for what is kept (default: outside your tree, named at the end)",
    )
    add("--resume", action="store_true", help="skip configs that verified before and are unchanged")
    add("--timeout", type=float, metavar="SECONDS", help="time limit of each config's command")
    add(
        "--log",
        type=Path,
        metavar="FILE",
        help="status file, such as check_clas.log",
    )
    add(
        "--layer-limit",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="time limit of the layer's own run beside the command (120)",
    )
    add(
        "--in-process",
        action="store_true",
        help="run the layer in the command's own process, as is always done on a GPU",
    )
    train = parser.add_argument_group("a training")
    train.add_argument(
        "--train",
        metavar="SOURCE",
        help="module:factory or file.py:factory that returns (model, optimizer, loss, data): train "
        "in dygraph and under to_static, and compare step by step",
    )
    train.add_argument("--steps", type=int, default=5, metavar="N", help="steps to train (5)")


def run_form(options: argparse.Namespace) -> int | None:
    """Run the form that is meant; None when it is none of these."""
    command: list[str] | None = options.command
    _check_belonging(options)
    if command is None and not options.each and not options.train:
        return None
    forms = [
        word for word, given in (("--train", options.train), ("--", command is not None)) if given
    ]
    if len(forms) > 1:
        raise UsageError("--train and a command cannot go together", hint="leave one of them out")
    if options.model:
        raise UsageError(
            "a model and a command cannot go together", hint="leave one of them out"
        )  # fmt: skip
    if options.train:
        from tipcheck.cli.verify_train import run_train

        return run_train(options)
    if not command:
        example = "tipcheck verify -- python tools/export_model.py -c x.yaml"
        raise UsageError("there is no command behind `--`", hint=f"such as `{example}`")
    if options.each:
        from tipcheck.cli.verify_each import run_each

        return run_each(options, command)
    from tipcheck.cli.verify_command import run_command

    return run_command(options, command)


def _check_belonging(options: argparse.Namespace) -> None:
    """Refuse options of a form that is not meant, which would be ignored without a word."""
    of_each = {"jobs": "--jobs", "resume": "--resume", "log": "--log"}
    given = [option for name, option in of_each.items() if getattr(options, name)]
    if options.timeout is not None and not options.train:
        given.append("--timeout")
    if given and not options.each:
        raise UsageError(
            f"{given[0]} belongs to --each", hint="leave it out, or add --each PATTERN"
        )
    if options.output and options.command is None:
        raise UsageError("--output belongs to a command behind `--`", hint="leave it out")
    if options.timeout is not None and not options.timeout > 0:
        raise UsageError(f"--timeout is {options.timeout:g}", hint="give seconds, such as 600")


def check_seed(seed: int) -> None:
    """Refuse what the random generators of numpy and Paddle do not take.

    Raises:
        UsageError: it is negative or too large.
    """
    if not 0 <= seed < 1 << 32:
        raise UsageError(f"--seed is {seed}", hint="give a number from 0 to 4294967295")


def watch_of(options: argparse.Namespace, *, wait: bool) -> Watch:
    """Return how exports are looked at.

    Raises:
        UsageError: a value that cannot be.
    """
    from tipcheck.backends.capture.command import Watch
    from tipcheck.backends.inputs.drawn import check_kinds
    from tipcheck.cli.verify import names

    check_kinds(names(options.kinds))
    if not options.layer_limit > 0:
        raise UsageError(f"--layer-limit is {options.layer_limit:g}", hint="give seconds above 0")
    return Watch(
        kinds=names(options.kinds) or KINDS,
        seed=options.seed,
        limit=options.layer_limit,
        wait=wait,
        in_process=options.in_process,
    )


def ladder_settings(options: argparse.Namespace, *, each: bool) -> Settings:
    """Return how the ladder is climbed; for whole repos, as the check of TIPC climbs it."""
    from dataclasses import replace

    from tipcheck.cli.verify import settings_of

    settings: Settings = settings_of(options)
    if each and not settings.stages:
        settings = replace(settings, stages=EACH_STAGES, state=False, referee=False)
    return replace(settings, workers=1) if each else settings


def allowed(options: argparse.Namespace) -> frozenset[str]:
    """Return the verdicts that count as good besides PASS."""
    return frozenset(options.allow)


def state_folder(what: str) -> Path:
    """Return a folder outside the user's tree that is the same for the same command."""
    import hashlib
    import tempfile

    name = hashlib.blake2b(f"{Path.cwd()}\0{what}".encode(), digest_size=6).hexdigest()
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(base, "tipcheck", "verify", f"{Path.cwd().name}-{name}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir(), f"tipcheck-{os.getuid()}", folder.name)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def write_json(result: Contract, path: Path) -> None:
    """Write a result as JSON.

    Raises:
        ToolError: it cannot be written.
    """
    from tipcheck import wire

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wire.dumps(result) + "\n", encoding="utf-8")
    except OSError as error:
        raise ToolError(f"cannot be written: {error.strerror}", where=str(path)) from None
