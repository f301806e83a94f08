"""Compare two .npz files of outputs, tensor by tensor, and say how far apart they are.

An output passes when it goes through every gate: structure (same outputs, shapes and dtypes),
NaN and infinity at the same places, integers and booleans equal, and for floating numbers
|actual - expected| <= atol + rtol * |expected|, element by element.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import EXIT_CHECK_FAILED, EXIT_GOOD, UsageError

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "expected",
        nargs="?",
        type=Path,
        metavar="EXPECTED.npz",
        help="the outputs to go by, saved with numpy.savez",
    )
    parser.add_argument(
        "actual",
        nargs="?",
        type=Path,
        metavar="ACTUAL.npz",
        help="the outputs to judge",
    )
    parser.add_argument("--rtol", type=float, help="relative tolerance (default: by dtype)")
    parser.add_argument("--atol", type=float, help="absolute tolerance (default: by dtype)")
    parser.add_argument(
        "--equal-nan",
        action="store_true",
        help="accept NaN where both sides have it",
    )
    parser.add_argument(
        "--bf16",
        action="append",
        default=[],
        metavar="NAME",
        help="this output, stored as uint16, holds bfloat16; may be repeated, '*' means all",
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="print the rules and the default tolerances, and compare nothing",
    )


def run(options: argparse.Namespace) -> int:
    """Compare, show, and return the exit code."""
    if options.explain:
        from tipcheck.report.rules import show_rules

        show_rules()
        return EXIT_GOOD
    if options.expected is None or options.actual is None:
        raise UsageError(
            "two files are needed", hint="type `tipcheck compare EXPECTED.npz ACTUAL.npz`"
        )
    # numpy's algebra reserves memory for every core when it starts, also under a memory limit.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from tipcheck.compare import Rules, Status, compare_files

    rules = Rules(
        rtol=options.rtol,
        atol=options.atol,
        equal_nan=options.equal_nan,
        bfloat16=frozenset(options.bf16),
    )
    try:
        comparison = compare_files(options.expected, options.actual, rules)
    except MemoryError:
        raise UsageError(
            "not enough memory to compare these files",
            where=f"{options.expected}, {options.actual}",
            hint="save both with the axes stored in the same order (numpy.ascontiguousarray)",
        ) from None
    if options.json:
        from tipcheck import wire

        print(wire.dumps(comparison))
    else:
        from tipcheck.report.comparison import show_comparison

        show_comparison(comparison)
    return EXIT_GOOD if comparison.status is Status.PASS else EXIT_CHECK_FAILED
