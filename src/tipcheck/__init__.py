"""tipcheck: prove that a PaddlePaddle model gives the same answers at every stage of its life.

The package is a house of nine rooms (sub-packages) along two straight corridors; data only ever
moves to the right::

    config text -> config_plans -> plan -> step_runner -> ledger -> report
    model, inputs -> backends -> outputs, traces -> compare -> verdicts -> stage_ladder, blame
    -> report

Importing ``tipcheck`` imports none of them, and no framework. ``tipcheck.verify``,
``tipcheck.debug`` and the others of ``__all__`` are imported when they are first used.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # type checkers take it for true; importing typing would double the start
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

__all__ = ["__version__", "debug", "save_golden", "tensors", "trace", "verify"]

_LIBRARY = {
    "debug": "tipcheck.debugging",
    "save_golden": "tipcheck.debugging",
    "tensors": "tipcheck.debugging",
    "trace": "tipcheck.debugging",
    "verify": "tipcheck.library",
}
"""What is offered to a user's own process, and where it stands."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each name has a type of its own
    """Import what somebody asks for."""
    if name not in _LIBRARY:
        raise AttributeError(f"module 'tipcheck' has no attribute {name!r}")
    __import__(_LIBRARY[name])
    return getattr(sys.modules[_LIBRARY[name]], name)
