"""How a ladder is climbed: what the caller says, where it differs from the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tipcheck.compare.budget import Budget


@dataclass(frozen=True, slots=True)
class Settings:
    """What to climb and how to judge.

    Attributes:
        stages: names of stages, in any order; empty for all that can run here. A stage asked for
            by name that cannot run fails the ladder.
        rtol: relative tolerance of full-precision stages; None for the default of the dtype.
        atol: absolute tolerance, likewise.
        budgets: noise budgets by precision that replace the published ones.
        bfloat16: names of outputs that hold bfloat16 bits; ``*`` for all stored as uint16.
        state: whether to run the state-and-shape suite.
        referee: whether to run the float64 referee.
        full: whether to do what takes more copies of a large model than a ladder should: every
            question of the suite, and the referee.
        time_limit: seconds that one stage may take before it counts as hanging.
        workers: stages that run at the same time; 0 chooses by cores and by the model's size.
        threads: threads that a stage may use.
        calibration: for ``trt_int8`` an ``.npz`` file with real samples, or a folder of them.
        keep: whether files of answers are kept in the folder.
    """

    stages: tuple[str, ...] = ()
    rtol: float | None = None
    atol: float | None = None
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    bfloat16: frozenset[str] = frozenset()
    state: bool = True
    referee: bool = True
    full: bool = False
    time_limit: float = 300.0
    workers: int = 0
    threads: int = 1
    calibration: str = ""
    keep: bool = False
