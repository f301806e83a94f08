"""Finds the op or the optimisation pass that made two executions of a model differ.

Comes in: two stages that differ, with their traces.
Goes out: the op table (who introduced an error, who only passed it on), the culprits, and a bundle
that reproduces the failure without tipcheck.
May import: ``compare``, and the contract of ``backends``.
"""

from tipcheck.blame.alignment import Alignment, Match, Pairing, Reason
from tipcheck.blame.culprit import Bundle, Culprit
from tipcheck.blame.table import OpRow, Table

__all__ = ["Alignment", "Bundle", "Culprit", "Match", "OpRow", "Pairing", "Reason", "Table"]
