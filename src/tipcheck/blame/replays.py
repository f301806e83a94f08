"""Computes introduced errors while the comparison is still going on.

A row can be judged as soon as its tensor and those before it have been seen, and then most of what
it started from is no longer needed. So the two forward passes, the comparison and the replays
overlap, and what has to be kept on disk is a window over the network, not the network.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from tipcheck.blame.introduced import Begun, Computer, Task
from tipcheck.blame.segments import last_use, segment_of
from tipcheck.blame.table import Introduced
from tipcheck.compare.verdict import Status
from tipcheck.errors import TipcheckError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tipcheck.backends.graph import Graph
    from tipcheck.blame.alignment import Pairing
    from tipcheck.blame.spool import Spool

_COMPUTED_IN = ("onednn_data_type", "mkldnn_data_type")
WHOLE_STEPS = ("int8", "uint8")
"""Element types whose values are counts of steps; the scale stands somewhere else."""
_KEEP = 4 << 30
"""Bytes that may lie on disk before tensors that seem to be done with are deleted."""


class Replays:
    """One pass over one sample; a thread of its own does the work.

    Args:
        graphs: of the baseline and of the candidate.
        pairings: what is compared.
        computer: computes one row.
        spool: where the candidate's tensors are kept.
    """

    def __init__(
        self,
        graphs: tuple[Graph, Graph],
        pairings: Iterable[Pairing],
        computer: Computer,
        spool: Spool,
    ) -> None:
        self._baseline, self._candidate = graphs
        self._pairings = {
            pairing.candidate: pairing for pairing in pairings if pairing.candidate is not None
        }
        self._computer = computer
        self._spool = spool
        self._nearest: dict[int, int] = {}
        self._seen: dict[int, str] = {}
        self._last = self._last_uses()
        self._rows: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._stopped = False
        self.found: dict[int, Introduced] = {}
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin to wait for rows."""
        self._thread.start()

    def row(self, key: int, dtype: str) -> None:
        """Say that a tensor of the candidate has been compared, and what type it was seen in."""
        self._seen[key] = dtype
        self._rows.put(key)

    def stop(self) -> None:
        """Compute no more; what is found so far stays."""
        self._stopped = True

    def finish(self) -> dict[int, Introduced]:
        """Return the introduced errors by the candidate's value, when all are computed."""
        self._rows.put(None)
        while self._thread.is_alive():
            self._thread.join(0.2)  # a wait without end would not hear Ctrl-C
        if self._failure is not None:
            raise self._failure
        return self.found

    def _last_uses(self) -> dict[int, int]:
        """Return after which row each tensor of the candidate is probably done with."""
        observed: dict[int, int] = {}
        segments, order = [], []
        for key, pairing in self._pairings.items():
            if pairing.baseline is None:
                continue
            segments.append(segment_of(self._baseline, pairing.baseline, observed))
            order.append(key)
            observed[pairing.baseline] = key
        uses = last_use(segments)
        return {observed[value]: order[at] for value, at in uses.items() if value in observed}

    def _work(self) -> None:
        begun: Begun | None = None
        try:
            while True:
                key = self._next(begun)
                if self._stopped:
                    return
                following = None if key is None or key < 0 else self._begin(key)
                if begun is not None:
                    self._finish(begun)
                begun = following
                if key is None:
                    return
        except BaseException as failure:  # noqa: BLE001 - raised where it is waited for
            self._failure = failure

    def _next(self, begun: Begun | None) -> int | None:
        """Return the next row; -1 when none has come yet and there is one to finish meanwhile."""
        try:
            return self._rows.get(block=begun is None)
        except queue.Empty:
            return -1

    def _begin(self, key: int) -> Begun | None:
        pairing = self._pairings.get(key)
        if pairing is None or pairing.baseline is None or not self._spool.arrived(key):
            return None
        floating = self._baseline.values[pairing.baseline].floating
        if floating and self._seen.get(key) in WHOLE_STEPS:
            self._spool.release([key])  # steps of a scale that is not the baseline's
            return None
        task = self._task(key, pairing.baseline, pairing)
        self._nearest[pairing.baseline] = key
        try:
            return self._computer.begin(task)
        except (TipcheckError, OSError, ValueError) as error:
            self.found[key] = Introduced(Status.UNSUPPORTED, reason=str(error))
            return None

    def _finish(self, begun: Begun) -> None:
        key = begun.task.candidate
        try:
            self.found[key] = self._computer.finish(begun)
        except (TipcheckError, OSError, ValueError, MemoryError) as error:
            self.found[key] = Introduced(Status.UNSUPPORTED, reason=str(error))
        if self._spool.size() > _KEEP:
            done = [one for one, last in self._last.items() if last in self.found]
            self._spool.release(done)

    def _task(self, key: int, target: int, pairing: Pairing) -> Task:
        # A baseline's value can stand for several of the candidate's: in bfloat16 and widened, say.
        # The pairing knows which of them its own op was fed with.
        fed = {value: mine for mine, value in pairing.inputs if mine in self._spool}
        nearest = {**self._nearest, **fed}
        segment = segment_of(self._baseline, target, nearest)
        sources = {value: nearest[value] for value in segment.inputs if value in nearest}
        moved = None
        if not pairing.covers and pairing.inputs and pairing.inputs[0][0] in self._spool:
            moved = pairing.inputs[0][0]
        permutations = {
            one: self._pairings[one].permutation
            for one in (key, *sources.values())
            if one in self._pairings and self._pairings[one].permutation
        }
        return Task(
            key, target, segment, sources, permutations, self._dtypes(key, sources.values()), moved
        )

    def _dtypes(self, key: int, sources: Iterable[int]) -> tuple[str, ...]:
        """Return the element types on the way; oneDNN can compute in another than it gives.

        An older program that was saved after its optimisation says float32 of bfloat16 tensors, so
        what was seen goes before what it says.
        """
        starts = set(sources)
        values = self._candidate.values
        found = [self._seen.get(one) or values[one].dtype for one in (key, *starts)]
        for at in segment_of(self._candidate, key, starts).ops:
            op = self._candidate.ops[at]
            # By-products may be anything: the scratch space of a normalisation is uint8.
            made = (self._candidate.values[value] for value in op.results)
            found += [
                self._seen.get(value.id) or value.dtype
                for value in made
                if value.floating or value.id in self._seen
            ]
            found += [str(op.attributes.get(name, "")) for name in _COMPUTED_IN]
        return tuple(found)
