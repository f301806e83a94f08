"""From the errors of all rows to a verdict: who is to blame, and what is said in one sentence.

The culprit is who introduces an error, not who inherits it. Rows are blamed by how much more error
they introduce than their format explains; the first that makes NaN out of numbers comes before all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tipcheck.blame.introduced import new_nonfinite
from tipcheck.blame.table import Blamed, OpRow
from tipcheck.compare.verdict import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcheck.blame.table import Introduced, Probe, TableCoverage
    from tipcheck.compare.budget import Budget
    from tipcheck.compare.verdict import Measures, TensorVerdict
    from tipcheck.errors import TipcheckError

_HALF_MAX = 65504.0
_HEADROOM = 8.0
"""Below this many times the largest value, float16's limit is near enough to be said."""
_NARROW_FLOATS = ("float16",)
_OPS_SHOWN = 5
_SEVERITY = {Status.FAIL: 3, Status.CRASH: 3, Status.SUSPECT: 2, Status.PASS: 1}


def row_status(introduced: Introduced | None, propagated: Measures | None, form: Budget) -> Status:
    """Return the verdict on a row: by the error it introduces, else by its distance."""
    if introduced is not None and introduced.status is not Status.UNSUPPORTED:
        return introduced.status
    if propagated is None:
        return Status.UNSUPPORTED
    if not propagated.mismatched:
        return Status.PASS
    ratio = propagated.sqnr_db
    if new_nonfinite(propagated) or ratio is None or ratio < form.fail_db:
        return Status.FAIL
    return Status.SUSPECT if ratio < form.warn_db else Status.PASS


def worse(one: OpRow, other: OpRow) -> OpRow:
    """Return the row of the sample that shows more; one that was cut short shows less."""
    computed = [row for row in (one, other) if row.introduced is not None]
    if len(computed) == 1:
        return computed[0]
    return max((one, other), key=_badness)


def _badness(row: OpRow) -> tuple[int, float, float]:
    return (
        _SEVERITY.get(row.status, 0),
        excess(row.introduced) if row.introduced else -math.inf,
        -_ratio(row.propagated),
    )


def _ratio(measures: Measures | None) -> float:
    if measures is None or measures.sqnr_db is None:
        return math.inf
    return measures.sqnr_db


def excess(introduced: Introduced) -> float:
    """Return how many dB more error there is than the format explains; infinite for NaN."""
    measures = introduced.measures
    if measures is None or introduced.expected_db is None:
        return math.inf if introduced.status is Status.FAIL else -math.inf
    if new_nonfinite(measures):
        return math.inf
    return introduced.expected_db - _ratio(measures)


def annotate(rows: Sequence[OpRow], *, half: bool) -> tuple[OpRow, ...]:
    """Say in the rows what their numbers mean: inherited, first NaN, little headroom."""
    seen_nonfinite = False
    told = []
    for row in rows:
        notes = [row.note] if row.note else []
        measures = row.propagated
        if measures is not None and not seen_nonfinite and new_nonfinite(measures):
            seen_nonfinite = True
            notes.append(f"first tensor with {_nonfinite_name(measures)} that the baseline has not")
        notes += _headroom(row, half=half)
        if row.introduced is not None and row.introduced.reason:
            notes.append(row.introduced.reason)
        elif _inherits(row):
            notes.append("inherits its error")
        told.append(replace(row, note="; ".join(notes)))
    return tuple(told)


def _inherits(row: OpRow) -> bool:
    return bool(row.propagated and row.propagated.mismatched and row.introduced) and (
        row.status is Status.PASS
    )


def _nonfinite_name(measures: Measures) -> str:
    return "NaN" if measures.actual.nan > measures.expected.nan else "infinity"


def _headroom(row: OpRow, *, half: bool) -> list[str]:
    side = row.propagated.actual if row.propagated else None
    if side is None or side.minimum is None or side.maximum is None:
        return []
    if not half and row.tensor.dtype not in _NARROW_FLOATS:
        return []
    top = max(abs(side.minimum), abs(side.maximum))
    if not top or top * _HEADROOM < _HALF_MAX:
        return []
    return [f"float16 headroom only {_HALF_MAX / top:.2g}x"]


def blame(rows: Sequence[OpRow]) -> tuple[Blamed, ...]:
    """Return who introduces an error, the worst first; of equals the one that runs first."""
    bad = [
        (place, row, row.introduced)
        for place, row in enumerate(rows)
        if row.introduced is not None and row.introduced.status is Status.FAIL
    ]
    ranked = sorted(bad, key=lambda item: (-excess(item[2]), item[0]))
    return tuple(_blamed(place, row, made) for place, row, made in ranked)


def _blamed(place: int, row: OpRow, made: Introduced) -> Blamed:
    where = f" of {row.tensor.layer_path}" if row.tensor.layer_path else ""
    does = ", ".join(made.covers[:_OPS_SHOWN]) + (" …" if len(made.covers) > _OPS_SHOWN else "")
    uses = f" with {', '.join(made.parameters[:_OPS_SHOWN])}" if made.parameters else ""
    size = ""
    if made.measures is not None and made.measures.max_abs_over_rms is not None:
        size = f", worst element off by {made.measures.max_abs_over_rms:.3g} x rms"
    evidence = (
        f"{row.tensor.op_type}{where} introduces an error of its own: {made.reason}{size}; "
        f"it does the work of {does or 'no op'}{uses}"
    )
    return Blamed(
        row=place,
        op_type=row.tensor.op_type,
        tensor=row.tensor.name,
        layer_path=row.tensor.layer_path,
        covers=made.covers,
        parameters=made.parameters,
        excess_db=excess(made),
        evidence=evidence,
    )


def overall(
    outputs: Status, rows: Sequence[OpRow], probe: Probe, coverage: TableCoverage
) -> Status:
    """Return the verdict on everything. Right outputs with a wrong op inside are suspect."""
    if not coverage.judged or not coverage.elements:
        return Status.FAIL
    if outputs is Status.FAIL or not probe.unchanged:
        return Status.FAIL if outputs is Status.FAIL else Status.SUSPECT
    inside = any(row.introduced and row.introduced.status is Status.FAIL for row in rows)
    return Status.SUSPECT if inside or outputs is Status.SUSPECT else Status.PASS


def sentence(
    outputs: tuple[TensorVerdict, ...],
    status: Status,
    culprits: tuple[Blamed, ...],
    probe: Probe,
    coverage: TableCoverage,
) -> str:
    """Say what is wrong and where it comes from."""
    if not coverage.judged or not coverage.elements:
        return "nothing was compared, which is a failure"
    bad = [item for item in outputs if item.status is not Status.PASS]
    first = (
        f"output {bad[0].name} is not what the baseline gives ({bad[0].reason})"
        if bad
        else "the final outputs are right"
    )
    if not probe.unchanged:
        return f"{first}; nobody is blamed, because looking changed the answers: {probe.reason}"
    if culprits:
        one = culprits[0]
        where = f" in {one.layer_path}" if one.layer_path else ""
        more = f", and {len(culprits) - 1} more" if len(culprits) > 1 else ""
        link = "; " if bad else ", but "
        return f"{first}{link}{one.op_type}{where} introduces an error{more}"
    if not coverage.replayed:
        return f"{first}; introduced errors were not computed, so nobody is blamed"
    if status is Status.PASS:
        return f"{first}, and no op makes more error than its format explains"
    missing = coverage.judged - coverage.replayed
    rest = f" ({missing} could not be computed)" if missing > 0 else ""
    return f"{first}; no op that was looked at introduces more than its format explains{rest}"


def crash_told(run_mode: str, crash: TipcheckError, rows: Sequence[OpRow], *, alive: bool) -> str:
    """Say what a candidate that does not run died of, how far it came, and what to try."""
    ran = [row.tensor for row in rows if row.propagated is not None]
    last = (
        f"; the last op that gave a tensor is {ran[-1].op_type}:{ran[-1].op_index}"
        if ran
        else "; no op had run by then"
    )
    told = f"{run_mode} does not run: {crash.what}{last if alive else ''}"
    return f"{told}; {crash.hint}" if crash.hint else told
