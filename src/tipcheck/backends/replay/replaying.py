"""Hands values to the replay worker and collects what it computes from them.

The worker is kept for the whole of a comparison, because starting one takes longer than computing a
whole network. It is fed through a named pipe; its end, whatever its reason, ends the waiting too.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from tipcheck.backends.isolation import WorkerEnd, run_worker
from tipcheck.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tipcheck.backends.graph import Graph


_MODULE = "tipcheck.backends.replay.worker"
_TICK = 0.2
_MOST_WORKERS = 4


@dataclass(frozen=True, slots=True)
class Order:
    """One value to compute.

    Attributes:
        key: what the answer is to be called.
        target: the value, as its id in the baseline's graph.
        given: files (``.npy``) of values to start from, by their ids in that graph.
        out: file to write the value to.
        double: compute in float64; otherwise in the types of the exported program.
        rounded: round the parameters to bfloat16 first.
        axes: for values that stand in another axis order than in the graph, what brings the
            graph's order into theirs.
    """

    key: int
    target: int
    given: Mapping[int, str]
    out: str
    double: bool = True
    rounded: bool = False
    axes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of an order.

    Attributes:
        key: as in the order.
        error: why there is no value; empty when there is one.
        ops: types of the ops that were computed, in order.
        double: whether it was computed in float64.
        seconds: how long it took.
        axes: what turns the value as it was computed, in the order of the exported program, into
            the order it has in the graph; empty where that is the same.
    """

    key: int
    error: str = ""
    ops: tuple[str, ...] = ()
    double: bool = True
    seconds: float = 0.0
    axes: tuple[int, ...] = ()


class Replayer:
    """The worker, seen from the other side; a context manager.

    ``known`` holds the values of the graph that were found in the exported program.
    """

    def __init__(
        self, model: Path, params: Path, graph: Graph, folder: Path, time_limit: float = 3600.0
    ) -> None:
        """Prepare.

        Args:
            model: the exported model whose ops are computed.
            params: its parameters.
            graph: the program that the ids in orders are of.
            folder: an empty folder to work in.
            time_limit: seconds for all of it.
        """
        self.model = model
        self.params = params
        self.graph = graph
        self.folder = folder
        self.time_limit = time_limit
        self.known: frozenset[int] = frozenset()
        self._begun = 0
        self._sent = 0
        self._asked: dict[int, Order] = {}
        self._kept: dict[int, Replayed] = {}
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._end: list[WorkerEnd] = []

    def __enter__(self) -> Replayer:  # noqa: PYI034 - typing has Self from Python 3.11 on
        """Start the worker; what it cannot read is said by the first answer."""
        self._begin()
        return self

    def _begin(self) -> None:
        graph = self.folder / "graph.json"
        orders = self.folder / f"orders_{self._begun}"
        self._begun += 1
        graph.write_bytes(msgspec.json.encode(self.graph))
        os.mkfifo(orders)
        # Opened for both so that neither side waits for the other to open it.
        self._pipe = os.fdopen(os.open(orders, os.O_RDWR), "wb", buffering=0)
        request = {
            "model": str(self.model.resolve()),
            "params": str(self.params.resolve()),
            "graph": str(graph),
            "orders": str(orders),
        }
        threads = str(len(os.sched_getaffinity(0)))
        env = {"FLAGS_paddle_num_threads": threads, "GLOG_minloglevel": "3"}
        self._thread = threading.Thread(target=self._run, args=(request, env), daemon=True)
        self._thread.start()
        first = self._next()
        if "refused" in first:
            self.__exit__(None, None, None)
            raise ToolError(
                f"its ops cannot be computed one by one ({first['refused']})",
                where=str(self.model),
                hint="compare without introduced errors (--no-replay)",
            )
        self.known = frozenset(first["known"])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the worker end by itself."""
        if self._thread.is_alive():
            self._send({"end": True})
        self._pipe.close()
        self._thread.join(10)

    def replay(self, order: Order) -> Replayed:
        """Compute one value; what cannot be computed is an answer."""
        return self.receive(self.send(order))

    def send(self, order: Order) -> int:
        """Ask for a value without waiting for it; return what ``receive`` knows it by."""
        self._revive()
        self._sent += 1
        self._asked[self._sent] = order
        self._send(msgspec.to_builtins(order, str_keys=True))
        return self._sent

    def receive(self, ticket: int) -> Replayed:
        """Wait for one answer; those to what was asked before it come first, and are kept.

        An op that takes the worker down with it is an answer too: the next one gets another worker.
        """
        while ticket not in self._kept:
            found = self._next()
            first = next(iter(self._asked))
            self._kept[first] = self._replayed(found)
            del self._asked[first]
            if not self._thread.is_alive() and self._answers.empty() and self._asked:
                self._revive()
                for order in self._asked.values():
                    self._send(msgspec.to_builtins(order, str_keys=True))
        return self._kept.pop(ticket)

    def _revive(self) -> None:
        """Start another worker where the last one died."""
        if not self._thread.is_alive() and self._begun <= _MOST_WORKERS:
            self._pipe.close()
            self._begin()

    @staticmethod
    def _replayed(found: Mapping[str, Any]) -> Replayed:
        return Replayed(
            key=found.get("key", -1),
            error=found.get("error", found.get("refused", "")),
            ops=tuple(found.get("ops", ())),
            double=found.get("double", True),
            seconds=found.get("seconds", 0.0),
            axes=tuple(found.get("axes", ())),
        )

    def _send(self, message: object) -> None:
        if self._thread.is_alive():
            self._pipe.write(json.dumps(message).encode() + b"\n")

    def _run(self, request: Mapping[str, object], env: Mapping[str, str]) -> None:
        try:
            end = run_worker(
                _MODULE,
                request,
                time_limit=self.time_limit,
                env=env,
                on_message=self._answers.put,
            )
        except ToolError as failure:
            self._answers.put({"refused": failure.what})
            return
        self._end.append(end)

    def _next(self) -> dict[str, Any]:
        while self._thread.is_alive() or not self._answers.empty():
            with contextlib.suppress(queue.Empty):
                return self._answers.get(timeout=_TICK)
        died = self._end[-1].died if self._end else ""
        return {"refused": f"the worker {died or 'ended'}"}
