"""What the answers of the state-and-shape suite mean.

The suite says how far answers were apart that should be the same. Bit for bit would be too much to
ask: a batch of one may take another kernel than a batch of two. So they are judged like any other
difference of that precision. Questions about rows have an answer only where rows do not depend on
each other; whether they do is the model's own affair, and what its plainest stage shows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tipcheck.backends.server.state_names import ABOUT_ROWS
from tipcheck.compare.budget import budget_for, coarser
from tipcheck.compare.verdict import Status
from tipcheck.stage_ladder.factors import WORST_FACTOR
from tipcheck.stage_ladder.rung import StateCheck

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tipcheck.stage_ladder.noise import Distance
    from tipcheck.stage_ladder.settings import Settings

_TOLD = {
    "run N": "later runs give other answers than the first",
    "equal rows": "equal rows of a batch give different answers",
    "permuted rows": "permuted rows give answers that are not permuted",
    "batch 1": "a row alone gives another answer than in a batch",
    "shapes A, B, A": "after another shape the same inputs give other answers",
    "two models": "a second model in the process changes the answers",
    "clone": "a clone gives other answers",
    "two threads": "in two threads the answers are others",
}


def rows_are_independent(
    checks: Sequence[Mapping[str, Any]], settings: Settings, floor: Distance | None
) -> set[str]:
    """Return the questions about rows that the plainest stage does not answer well.

    Those are properties of the model: its rows depend on each other.
    """
    return {
        check["check"]
        for check in checks
        if check["check"] in ABOUT_ROWS
        and _judge(check, "float32", settings, floor).status is not Status.PASS
    }


def judge_state(
    checks: Sequence[Mapping[str, Any]],
    precision: str,
    settings: Settings,
    floor: Distance | None,
    mixes: set[str],
) -> tuple[StateCheck, ...]:
    """Return a verdict for each question."""
    found = []
    for check in checks:
        verdict = _judge(check, precision, settings, floor)
        if verdict.name in mixes and verdict.status is not Status.UNSUPPORTED:
            verdict = StateCheck(
                verdict.name,
                Status.UNSUPPORTED,
                "the rows of this model depend on each other, also without optimisation",
                verdict.worst,
            )
        found.append(verdict)
    return tuple(found)


def _judge(
    check: Mapping[str, Any], precision: str, settings: Settings, floor: Distance | None
) -> StateCheck:
    name = check["check"]
    if "why" in check:
        return StateCheck(name, Status.UNSUPPORTED, check["why"])
    if "problem" in check:
        return StateCheck(name, Status.FAIL, f"{_TOLD[name]}: {check['problem']}")
    worst = float(check["worst"])
    suspect, fail = _limits(precision, settings, floor)
    if worst <= suspect:
        return StateCheck(name, Status.PASS, "", worst)
    status = Status.FAIL if worst > fail else Status.SUSPECT
    size = "in shape, dtype, integers or NaN" if math.isinf(worst) else f"by {worst:.2g} x rms"
    return StateCheck(name, status, f"{_TOLD[name]}, {size}", worst)


def _limits(precision: str, settings: Settings, floor: Distance | None) -> tuple[float, float]:
    """Return from where an element is suspect, and from where it fails, over rms."""
    budget = budget_for(precision, settings.budgets)
    noise = 0.0
    if floor is not None:
        noise = 2 * WORST_FACTOR * floor.worst * coarser(precision)
    suspect = max(10 ** (-budget.warn_db / 20) * 3, noise)
    return suspect, max(budget.worst, 10 * suspect)
