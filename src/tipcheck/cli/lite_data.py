"""Make a small data set for the lite modes out of a full one: a folder and a tar of it.

The same samples and the same bytes on every machine: they depend on the names in the data set and
on --seed alone. Understood are list files (train_list.txt, val_list.txt), train/ and val/ with
class folders, and class folders without a split.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_GOOD, UsageError

if TYPE_CHECKING:
    import argparse

_SHOWN = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``tipcheck lite-data``."""
    parser.add_argument("source", type=Path, metavar="SRC", help="folder of the full data set")
    parser.add_argument(
        "target", type=Path, metavar="DST", help="folder to make, such as ./lite_data"
    )
    for part in ("train", "val"):
        parser.add_argument(
            f"--{part}",
            type=int,
            default=16,
            metavar="N",
            help=f"samples for {part} (default: %(default)s)",
        )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="another number is another choice"
    )


def run(options: argparse.Namespace) -> int:
    """Make the small data set."""
    from tipcheck.config_plans.lite_data.archive import check_target, write
    from tipcheck.config_plans.lite_data.choice import choose
    from tipcheck.config_plans.lite_data.source import find_source

    counts = {"train": options.train, "val": options.val}
    for part, count in counts.items():
        if count < 1:
            raise UsageError(f"--{part} is {count}", hint="give a number of 1 or more")
    target = Path(os.path.abspath(options.target))  # noqa: PTH100 - resolve() would follow links
    check_target(options.source, target)
    source = find_source(options.source)
    sys.stdout.write(f"{options.source}: {source.form}\n")
    _list("no picture in", source.empty)
    data = choose(source, counts, options.seed)
    _list("passed over:", data.damaged)
    written = write(data, target)
    sys.stdout.write(
        f"{options.train} for train, {options.val} for val, from {data.groups} class(es)\n"
        f"wrote {os.path.relpath(written.folder)}/ and {os.path.relpath(written.tar)} "
        f"({written.size / 1e6:.2f} MB, sha256 {written.sha256})\n"
    )
    return EXIT_GOOD


def _list(what: str, items: tuple[str, ...]) -> None:
    for item in items[:_SHOWN]:
        sys.stdout.write(f"! {what} {item}\n")
    if len(items) > _SHOWN:
        sys.stdout.write(f"! … and {len(items) - _SHOWN} more\n")
