"""What a table says of the conditions it was made under: versions and thresholds."""

from __future__ import annotations

import contextlib
import platform
from importlib import metadata
from typing import TYPE_CHECKING

import tipcheck
from tipcheck.blame import budget
from tipcheck.compare.budget import BUDGETS
from tipcheck.compare.tolerance import threshold_for

if TYPE_CHECKING:
    from tipcheck.compare.budget import Budget
    from tipcheck.compare.judge import Rules

_PACKAGES = ("paddlepaddle", "paddlepaddle-gpu", "paddle2onnx", "onnxruntime", "openvino", "numpy")


def versions() -> dict[str, str]:
    """Return the version of everything that takes part and is installed."""
    found = {"tipcheck": tipcheck.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return {**found, "machine": f"{platform.system()} {platform.machine()}"}


def thresholds(rules: Rules, form: Budget) -> dict[str, str]:
    """Return what was judged by, in words."""
    rows = threshold_for("float32", rules.rtol, rules.atol)
    told = {
        "a row mismatches": f"|difference| > {rows.atol:g} + {rows.rtol:g} x |baseline|, "
        f"{rows.source} (by the coarser dtype of the two)",
        "final outputs": f"{form.precision}: PASS from {form.warn_db:g} dB, "
        f"FAIL below {form.fail_db:g} dB, where the tolerance is exceeded",
    }
    for row in BUDGETS:
        told[f"introduced, {row.precision}"] = (
            f"{row.one_op_db:g} dB for one op, less 10 log10(roundings), less "
            f"{budget.MARGIN_DB:g} dB; blamed {budget.FAIL_DB:g} dB below that"
        )
    return told
