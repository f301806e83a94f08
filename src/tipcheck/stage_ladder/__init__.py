"""Puts the stages of one model in order, each changing one thing, and finds the first that breaks.

Comes in: a model, its inputs, a list of stages.
Goes out: a ``LadderResult``: one ``Rung`` per stage, and the first on which the answers change.
May import: ``compare``, and the contract of ``backends``.
"""

from tipcheck.compare.budget import BUDGETS, Budget
from tipcheck.stage_ladder.rung import Against, Flips, LadderResult, Rung, SetNote, StateCheck
from tipcheck.stage_ladder.settings import Settings

__all__ = [
    "BUDGETS",
    "Against",
    "Budget",
    "Flips",
    "LadderResult",
    "Rung",
    "SetNote",
    "Settings",
    "StateCheck",
]
