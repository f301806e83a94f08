"""How much noise each number format explains, as data: of one op, and of the outputs of a network.

Two figures say how far two tensors are apart whatever their scale: signal to noise in dB, an
average that is stable whatever the depth, and the worst element over the rms, an extreme that no
average hides. ``stage_ladder`` judges stages by this table, ``blame`` judges ops. ``tipcheck
verify --explain`` prints it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Budget:
    """One row.

    Attributes:
        precision: the number format that is computed in.
        warn_db: final outputs of a network below this are SUSPECT.
        fail_db: below this they FAIL.
        worst: largest difference over rms that is no failure.
        one_op_db: what one product with accumulation reaches when it only rounds.
        roundoff: relative size of one rounding.
        why: where the figures come from.
    """

    precision: str
    warn_db: float
    fail_db: float
    worst: float
    one_op_db: float
    roundoff: float
    why: str = ""


BUDGETS: tuple[Budget, ...] = (
    Budget("float64", 200.0, 160.0, 1e-7, 290.0, 2.0**-53, "one GEMM keeps about 300 dB"),
    Budget(
        "float32",
        100.0,
        80.0,
        1e-3,
        129.0,
        2.0**-24,
        "one GEMM keeps 128 dB, a deep net 110 to 125",
    ),
    Budget("tf32", 55.0, 40.0, 0.1, 70.0, 2.0**-11, "one GEMM keeps 70 dB"),
    Budget("float16", 50.0, 35.0, 0.15, 70.0, 2.0**-11, "one GEMM keeps 70 dB"),
    Budget(
        "bfloat16",
        35.0,
        25.0,
        0.5,
        52.0,
        2.0**-8,
        "one GEMM keeps 52 dB, each doubling of depth costs 3",
    ),
    Budget("int8", 20.0, 12.0, 1.5, 39.0, 2.0**-7, "one rounding to 8 bits keeps 39 dB"),
)

_BY_PRECISION = {row.precision: row for row in BUDGETS}


def budget_for(precision: str, given: Mapping[str, Budget] | None = None) -> Budget:
    """Return the budget of a precision; what is given replaces the table."""
    return (given or {}).get(precision) or _BY_PRECISION[precision]


def coarser(precision: str) -> float:
    """Return how many times as large as float32's the rounding of a precision is."""
    return _BY_PRECISION[precision].roundoff / _BY_PRECISION["float32"].roundoff
