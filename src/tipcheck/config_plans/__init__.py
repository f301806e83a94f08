"""Turns the config text of a model repo into a plan of commands.

Comes in: one TIPC text file, and a profile (data that says what its lines mean).
Goes out: a ``Plan`` of ``Step`` s, each with its argv, environment, log and the steps it needs
(``planner.make_plan``), or what is wrong in the config (``lint.lint``).
May import: the standard library only. Config text is never given to a shell; only ``record`` starts
anything, a repo's own bash among stand-ins.
"""

from tipcheck.config_plans.plan import Correction, Plan, Step

__all__ = ["Correction", "Plan", "Step"]
