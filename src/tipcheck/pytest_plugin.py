"""A fixture for pytest: ``def test_export(parity): parity(layer, spec)``.

Every test run of everybody who has tipcheck installed imports this file, so it imports nothing
itself: neither a framework nor tipcheck, until a test asks for the fixture.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False  # as in cli/main.py: importing typing is not free
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


@pytest.fixture
def parity() -> Callable[..., Any]:
    """Check that a model gives the same answers at every stage; fail with all evidence if not.

    Call it with a ``paddle.nn.Layer`` and its specs, an exported model's path, or
    ``module:factory``, and with whatever else ``tipcheck.verify`` takes. It returns the report.
    """
    from tipcheck.pytest_parity import check_parity

    return check_parity
