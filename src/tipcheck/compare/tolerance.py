"""The default tolerances, one per dtype, as data: what counts as equal when nobody says otherwise.

They are for the outputs of exported models, compared end to end with the model they came from.
``tipcheck compare --explain`` prints this table.
"""

from __future__ import annotations

from dataclasses import dataclass

from tipcheck.compare.verdict import Threshold


@dataclass(frozen=True, slots=True)
class Tolerance:
    """One row of the table."""

    dtype: str
    rtol: float
    atol: float
    why: str


DEFAULTS: tuple[Tolerance, ...] = (
    Tolerance("float64", 1e-7, 1e-7, "what numpy.testing.assert_allclose allows, with a floor"),
    Tolerance("float32", 1e-4, 1e-4, "the threshold of the dynamic-to-static check of TIPC"),
    Tolerance("float16", 1e-3, 1e-3, "one unit in the last place at 1 is 0.00098"),
    Tolerance("bfloat16", 1e-2, 1e-2, "one unit in the last place at 1 is 0.0078"),
    Tolerance("complex128", 1e-7, 1e-7, "as float64, on the modulus of the difference"),
    Tolerance("complex64", 1e-4, 1e-4, "as float32, on the modulus of the difference"),
)

_BY_DTYPE = {row.dtype: row for row in DEFAULTS}
_WIDE = {"longdouble": "float64", "float128": "float64", "float96": "float64"}
_WIDE |= {"clongdouble": "complex128", "complex256": "complex128", "complex192": "complex128"}


def threshold_for(dtype: str, rtol: float | None = None, atol: float | None = None) -> Threshold:
    """Return the tolerance for a floating dtype; what is not given comes from the table."""
    row = _BY_DTYPE[_WIDE.get(dtype, dtype)]
    if rtol is None and atol is None:
        source = f"default for {row.dtype}"
    elif rtol is None:
        source = f"rtol: default for {row.dtype}, atol: given"
    elif atol is None:
        source = f"rtol: given, atol: default for {row.dtype}"
    else:
        source = "given"
    return Threshold(
        rtol=row.rtol if rtol is None else rtol,
        atol=row.atol if atol is None else atol,
        source=source,
    )
