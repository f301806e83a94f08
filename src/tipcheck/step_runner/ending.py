"""From what the operating system says to an outcome: the only place that decides one.

The order of the rules is the point. A step that was ended for its time limit is ``timed out``
whatever it died of, one that died on a signal is ``crashed`` even if it printed success, and only a
step that returned 0 can be ``hollow``.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.step_runner.outcome import Outcome, StepResult
from tipcheck.step_runner.reason import last_error, tail_of

if TYPE_CHECKING:
    from tipcheck.step_runner.contract import End

_SHELL_SIGNAL = 128
_HIGHEST_SIGNAL = 64


def to_result(
    step_id: str, end: End, log: str, limit: float | None, *, shown_log: str
) -> StepResult:
    """Return the result of a step that ended by itself or by its time limit.

    Args:
        step_id: the step.
        end: how it ended; not one that was interrupted.
        log: where its log is.
        limit: its time limit, if it had one.
        shown_log: the log's path as the plan says it.
    """
    outcome, reason = _judge(end, Path(log), limit)
    return StepResult(
        step_id=step_id,
        outcome=outcome,
        reason=reason,
        exit_code=end.exit_code,
        signal=None if end.signal is None else signal_name(end.signal),
        seconds=end.seconds,
        peak_memory_bytes=end.peak_memory_bytes,
        log=shown_log,
        note=_note(end),
    )


def _judge(end: End, log: Path, limit: float | None) -> tuple[Outcome, str]:
    if end.trouble:
        return Outcome.FAILED, end.trouble
    if end.cut == "timeout":
        return Outcome.TIMED_OUT, f"ended after its time limit of {limit or 0:g} s"
    if end.signal is not None:
        said = last_error(end.last_words or tail_of(log))
        name = signal_name(end.signal)
        hint = " (often the system's out-of-memory killer)" if name == "SIGKILL" else ""
        return Outcome.CRASHED, f"died on {name}{hint}" + (f": {said}" if said else "")
    if end.exit_code != 0:
        said = last_error(end.last_words or tail_of(log)) or "its log is empty"
        return Outcome.FAILED, f"{said} ({_explain_code(end.exit_code)})"
    if end.hollow:
        return Outcome.HOLLOW, end.hollow
    return Outcome.PASSED, ""


def signal_name(number: int) -> str:
    """Return a name such as ``SIGSEGV``; real-time signals have numbers only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _explain_code(code: int | None) -> str:
    number = (code or 0) - _SHELL_SIGNAL
    if 0 < number <= _HIGHEST_SIGNAL:
        return f"exit code {code}: a process of it died on {signal_name(number)}"
    return f"exit code {code}"


def _note(end: End) -> str:
    notes = [end.log_note] if end.log_note else []
    if end.left_behind:
        notes.append(f"left {end.left_behind} process(es) running, which were ended")
    return "; ".join(notes)
