"""What the programs of this folder show with: the message of an error, the ops of an export.

Also their `--help`: a program that has no options only says what it shows, and exports nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paddle

if {"-h", "--help"} & set(sys.argv[1:]) and not sys.argv[0].endswith("run_all.py"):
    print(f"usage: {Path(sys.argv[0]).name}\n\n{sys.modules['__main__'].__doc__}")
    sys.exit(0)


def message(action: Callable[[], Any]) -> str:
    """Do what has to fail; return the kind of error and the line of it that matters.

    Raises:
        AssertionError: it did not fail.
    """
    try:
        action()
    except Exception as error:  # noqa: BLE001 (whatever it is, it is shown)
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = next((line for line in reversed(lines) if "Error: " in line), lines[0])
        kind = type(error).__name__
        return told if told.startswith(kind) else f"{kind}: {told}"
    raise AssertionError("this was expected to fail")


def ops(prefix: str) -> str:
    """Return the names of the ops that an exported program holds, without those that bring data."""
    layer = paddle.jit.load(prefix)
    program = layer.program()  # `layer` has to live as long as it
    found = program.global_block().ops
    names = [
        op.name().split(".")[-1] if callable(getattr(op, "name", None)) else op.type for op in found
    ]
    quiet = {"data", "feed", "fetch", "parameter", "full", "full_int_array", "shadow_output"}
    return " ".join(name for name in names if name not in quiet)


def files(prefix: str) -> str:
    """Return the names of the files whose names begin like that."""
    return " ".join(sorted(path.name for path in Path().glob(f"{prefix}*")))


def apart(one: Any, other: Any) -> float:
    """Return the largest difference of two tensors, to five places."""
    if one.shape != other.shape:
        raise AssertionError(f"{one.shape} and {other.shape}")
    return round(float((one - other).abs().max()), 5)
