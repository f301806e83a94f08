"""Runs a plan and keeps a durable ledger of what happened.

Comes in: a ``Plan`` from ``config_plans``.
Goes out: one ``StepResult`` per step, with its outcome, kept in a ledger that survives a kill.
May import: the words of ``config_plans``, and an engine's own library inside that engine's file.
"""

from tipcheck.step_runner.outcome import Outcome, StepResult

__all__ = ["Outcome", "StepResult"]
