"""What tells an ordinary op from one that is broken: how far it may fall short of its format.

All of them are signal to noise ratios in dB, which do not depend on the scale of a tensor, average
over its elements and fall by ten times the logarithm of how often a value is rounded on its way.
``bench/debug_bf16.py`` and ``bench/debug_faults.py`` print what is measured against them.
"""

from __future__ import annotations

import math

from tipcheck.compare.budget import BUDGETS, Budget, budget_for
from tipcheck.compare.verdict import Status

MARGIN_DB = 6.0
"""How far below the expectation an op may lie without a second look."""
FAIL_DB = 12.0
"""How much further below it has to lie to be blamed."""
OWN_ERROR_DB = 18.0
"""An error within this of what the baseline's own implementation makes on the same values is the
op's nature (it cancels, or it amplifies what it is given), not a defect."""
ROUNDING_DB = 12.0
"""The same for a format of 16 or 8 bits, whose rounding of the parameters can be tried out."""

_KNOWN = frozenset(row.precision for row in BUDGETS)
_NARROW = {"uint8": "int8", "complex64": "float32", "complex128": "float64"}


def format_of(*dtypes: str) -> Budget:
    """Return the coarsest format among some dtypes; float32 when none is a number format."""
    names = (_NARROW.get(item, item) for item in dtypes)
    rows = [budget_for(name) for name in names if name in _KNOWN]
    return min(rows, key=lambda row: row.one_op_db, default=budget_for("float32"))


def expected_db(form: Budget, roundings: int) -> float:
    """Return the ratio that a format explains after some roundings."""
    return form.one_op_db - 10.0 * math.log10(max(roundings, 1)) - MARGIN_DB


def judge_db(reached: float, expected: float) -> Status:
    """Return the verdict on a ratio, before the second look."""
    if reached >= expected:
        return Status.PASS
    return Status.SUSPECT if reached >= expected - FAIL_DB else Status.FAIL
