"""What the fixture ``parity`` does, and what a test says that fails by it.

A failed test prints its message into a log that nobody can query, so everything that leads to the
cause is in it: what changed first, how much of the output, by how much at most and where, what was
allowed, and how the other stages did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.compare.verdict import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcheck.library import Report
    from tipcheck.stage_ladder.rung import Against, LadderResult, Rung

_BAD = (Status.FAIL, Status.CRASH, Status.SUSPECT)


def check_parity(
    model: Any,  # noqa: ANN401 - a layer of Paddle, which has no types
    spec: Sequence[Any] | None = None,
    **options: Any,  # noqa: ANN401 - what ``tipcheck.verify`` takes
) -> Report:
    """Verify a model; return the report, or fail the test.

    Args:
        model: a layer, an exported model, or ``module:factory``.
        spec: the arguments of a layer as ``paddle.static.InputSpec``.
        options: ``stages``, ``inputs``, ``settings``, ``seed``, ``allow``: see ``tipcheck.verify``.

    Raises:
        AssertionError: the answers change on the way; the message says where and how.
    """
    __tracebackhide__ = True
    from tipcheck.library import verify

    report = verify(model, spec=spec, **options)
    if not report.good:
        raise AssertionError(failure_message(report.result))
    return report


def failure_message(result: LadderResult) -> str:
    """Return what is wrong with a model, in the order in which one looks for the cause."""
    lines = [f"{result.model}: {result.sentence}", ""]
    bad = [rung for rung in result.rungs if rung.status in _BAD]
    first = next((rung for rung in bad if rung.stage == result.first_break), None)
    for rung in [first] if first else bad[:1]:
        lines += _told(rung)
    lines += ["Stages:"]
    width = max((len(rung.stage) for rung in result.rungs), default=0)
    for rung in result.rungs:
        lines.append(f"  {rung.stage.ljust(width)}  {rung.status.value:11}  {rung.reason}".rstrip())
    if result.resolution is not None:
        lines += ["", f"A fault of {result.resolution:.2g} of the rms would have been seen."]
    return "\n".join(lines)


def _told(rung: Rung) -> list[str]:
    against = rung.bottom or rung.below
    if against is None or against.verdict is None:
        last = [f"  | {line}" for line in rung.last_lines]
        return [f"{rung.stage}: {rung.reason}", *last, ""]
    return [f"{rung.stage} differs from {against.stage} ({against.where}):", *_figures(against), ""]


def _figures(against: Against) -> list[str]:
    verdict = against.verdict
    assert verdict is not None  # noqa: S101 - asked before
    lines = [f"  {verdict.reason}"]
    measures, limit, worst = verdict.measures, verdict.threshold, verdict.worst
    if measures is not None:
        share = 100 * measures.mismatched / max(verdict.elements, 1)
        lines.append(
            f"  Mismatched elements: {measures.mismatched:,} / {verdict.elements:,} ({share:.1f}%)"
        )
        at = f" at index {worst.index}" if worst is not None else ""
        if measures.max_abs is not None and limit is not None:
            allowed = f"(up to {limit.atol:g} allowed)"
            lines.append(f"  Greatest absolute difference: {measures.max_abs:g} {allowed}")
        if measures.max_relative is not None and limit is not None:
            lines.append(
                f"  Greatest relative difference: {measures.max_relative:g}{at} "
                f"(up to {limit.rtol:g} allowed)"
            )
    if worst is not None:
        lines.append(f"  Worst element {worst.index}: {worst.expected} became {worst.actual}")
    if against.sqnr_db is not None:
        lines.append(f"  Signal to noise: {against.sqnr_db:.1f} dB")
    if against.flips is not None and against.flips.flipped:
        flips = against.flips
        lines.append(f"  Decisions that flip: {flips.flipped} of {flips.decisions}")
    return lines
