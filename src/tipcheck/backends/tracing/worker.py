"""The worker behind every trace: makes one watched execution, then does what it is told.

Run as ``python -m tipcheck.backends.tracing.worker`` by a ``Session``. Requests come as lines of
JSON over a socket; a request ends with an answer that carries ``done``.
"""

from __future__ import annotations

import importlib
import os
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.isolation import answer_request
from tipcheck.backends.trace import TracedTensor
from tipcheck.backends.tracing.pool import Line, Receiver, Sender, connect, listen
from tipcheck.backends.tracing.run_modes import ModeSettings
from tipcheck.errors import TipcheckError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tipcheck.backends.tracing.observe import Array


def work(request: dict[str, Any], answer: Callable[[dict[str, Any]], None]) -> None:
    """Serve one session."""
    line = connect(request["control"])
    line.send({"pid": os.getpid()})
    try:
        server = _Server(request, line)
    except TipcheckError as error:
        line.send(_refusal(error))
        answer({"ended": True})
        return
    line.send({"done": True})
    while True:
        order = line.receive()
        if order is None or order["do"] == "end":
            break
        try:
            line.send({"done": True, **getattr(server, f"do_{order['do']}")(order)})
        except TipcheckError as error:  # the model stays loaded: the next order may be another one
            line.send(_refusal(error))
    answer({"ended": True})


def _refusal(error: TipcheckError) -> dict[str, Any]:
    kind = type(error).__name__
    return {
        "done": True,
        "error": kind,
        "what": error.what,
        "where": error.where,
        "hint": error.hint,
    }


class _Server:
    def __init__(self, request: dict[str, Any], line: Line) -> None:
        from tipcheck.backends.tracing.watched import make_watched

        self._line = line
        self._folder = Path(request["folder"])
        settings = ModeSettings(**request["settings"])
        inputs = request.get("inputs")
        first = _load(inputs) if inputs else None
        self._watched = make_watched(
            request["model"], request["run_mode"], settings, self._folder, first
        )

    def do_graph(self, order: dict[str, Any]) -> dict[str, Any]:
        """Write the graph to a file."""
        from tipcheck import wire

        Path(order["file"]).write_text(wire.dumps(self._watched.graph, indent=None), "utf-8")
        return {}

    def do_run(self, order: dict[str, Any]) -> dict[str, Any]:
        """Run without observation."""
        return self._finish(order, *self._timed(order, None, None))

    def do_list(self, order: dict[str, Any]) -> dict[str, Any]:
        """Run and tell what there is, without values."""
        return self._finish(order, *self._timed(order, self._tell, ()))

    def do_send(self, order: dict[str, Any]) -> dict[str, Any]:
        """Run and send the wanted tensors to another process."""
        line = connect(order["peer"])
        sender = Sender(line, Path(order["pool"]), self._folder)
        want = None if order["want"] is None else frozenset(order["want"])

        def sink(tensor: TracedTensor, values: Array | None) -> None:
            self._tell(tensor, values)
            if want is None or tensor.value in want:
                sender.put(tensor, values)

        try:
            outputs, seconds = self._timed(order, sink, want)
        except BaseException:
            sender.end()
            line.close()
            raise
        sender.end()
        answer = self._finish(order, outputs, seconds)
        # Hanging up with messages unread would take away what the other side has still to read.
        while line.receive() is not None:
            pass
        line.close()
        return answer

    def do_compare(self, order: dict[str, Any]) -> dict[str, Any]:
        """Run, and give each wanted tensor and its partners to a judge named by the order."""
        server = listen(order["peer"])
        connection, _ = server.accept()
        line = Line(connection)
        receiver = Receiver(line, Path(order["pool"]))
        module, _, name = order["judge"].partition(":")
        judge = getattr(importlib.import_module(module), name)(order, receiver, self._row)
        inputs = _load(order["inputs"])

        def sink(tensor: TracedTensor, values: Array | None) -> None:
            self._tell(tensor, values)
            judge.take(tensor, values)

        try:
            outputs, seconds = self._timed(order, sink, frozenset(judge.wanted))
            judge.finish(inputs)
        finally:
            line.close()
            server.close()
        return self._finish(order, outputs, seconds)

    def _timed(self, order: dict[str, Any], sink: Any, want: Any) -> tuple[Any, float]:  # noqa: ANN401
        inputs = _load(order["inputs"])
        start = time.perf_counter()
        outputs = self._watched.run(inputs, sink, want)
        return outputs, time.perf_counter() - start

    def _tell(self, tensor: TracedTensor, values: Array | None) -> None:
        del values
        fields = {name: getattr(tensor, name) for name in TracedTensor.__dataclass_fields__}
        self._line.send({"tensor": fields})

    def _row(self, row: dict[str, Any]) -> None:
        self._line.send({"row": row})

    def _finish(
        self, order: dict[str, Any], outputs: dict[str, Array], seconds: float
    ) -> dict[str, Any]:
        import numpy as np

        archive = order["outputs"]
        arrays: dict[str, Any] = {str(place): one for place, one in enumerate(outputs.values())}
        np.savez(archive, **arrays)
        return {"outputs": list(outputs), "archive": archive, "seconds": seconds}


def _load(path: str) -> dict[str, Array]:
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(
            f"cannot be read as inputs ({error})", where=path, hint="give an .npz file"
        ) from None


if __name__ == "__main__":
    answer_request(work)
