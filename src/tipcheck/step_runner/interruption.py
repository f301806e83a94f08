"""Ctrl-C and its relatives as a number to look at, instead of an exception anywhere.

The first signal asks the run to stop in order: steps get SIGTERM and their grace period, the ledger
is closed. A second one ends everything at once. Outside the main thread, where Python cannot handle
signals, the count stays zero.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Counts the signals that ask the tool to stop, as long as it is entered."""

    def __init__(self) -> None:
        self.count = 0
        self.name = ""
        self._before: dict[signal.Signals, Any] = {}

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.name = signal.Signals(number).name

    def __enter__(self) -> Interruption:  # noqa: PYI034 - typing.Self needs Python 3.11
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if before is not signal.SIG_IGN:  # nohup ignores SIGHUP for a reason
                    self._before[number] = before
                    signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
