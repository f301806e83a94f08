"""Computes introduced errors while the comparison is still going on.

A row can be judged as soon as its tensor and those before it have been seen, and then most of what
it started from is no longer needed. So the two forward passes, the comparison and the replays
overlap, and what has to be kept on disk is a window over the network, not the network.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from tipcheck.blame.introduced import Computer, Task
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
        self._last = self._last_uses()
        self._rows: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._stopped = False
        self.found: dict[int, Introduced] = {}
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin to wait for rows."""
        self._thread.start()

    def row(self, key: int) -> None:
        """Say that a tensor of the candidate has been compared."""
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
        try:
            while True:
                key = self._rows.get()
                if key is None or self._stopped:
                    return
                self._one(key)
        except BaseException as failure:  # noqa: BLE001 - raised where it is waited for
            self._failure = failure

    def _one(self, key: int) -> None:
        pairing = self._pairings.get(key)
        if pairing is None or pairing.baseline is None or not self._spool.arrived(key):
            return
        task = self._task(key, pairing.baseline, pairing)
        try:
            self.found[key] = self._computer.compute(task)
        except (TipcheckError, OSError, ValueError, MemoryError) as error:
            self.found[key] = Introduced(Status.UNSUPPORTED, reason=str(error))
        self._nearest[pairing.baseline] = key
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
        """Return the element types on the way; oneDNN can compute in another than it gives."""
        starts = set(sources)
        found = [self._candidate.values[one].dtype for one in (key, *starts)]
        for at in segment_of(self._candidate, key, starts).ops:
            op = self._candidate.ops[at]
            # By-products may be anything: the scratch space of a normalisation is uint8.
            made = (self._candidate.values[value] for value in op.results)
            found += [value.dtype for value in made if value.floating]
            found += [str(op.attributes.get(name, "")) for name in _COMPUTED_IN]
        return tuple(found)
