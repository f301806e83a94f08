"""Tensors on their way from one worker to another: a bounded piece of shared memory and a socket.

The sender writes a tensor into the pool and tells where; the receiver looks at it there and gives
the place back. When the pool is full the sender waits. If what the receiver waits for has still to
come, waiting would last forever, so the tensor goes to a file instead.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import select
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.trace import TracedTensor
from tipcheck.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Array = npt.NDArray[Any]

_ALIGN = 64
_PATIENCE = 120.0


class Line:
    """JSON messages over a socket, one a line."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._pending = b""

    def send(self, message: dict[str, Any]) -> None:
        """Send one message; a peer that is gone is noticed by ``receive``."""
        with contextlib.suppress(OSError):
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, timeout: float | None = None) -> dict[str, Any] | None:
        """Return the next message; None when there is none in time, or the peer is gone."""
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._connection], [], [], timeout)
            if not ready:
                return None
            try:
                chunk = self._connection.recv(1 << 16)
            except OSError:
                chunk = b""
            if not chunk:
                self.closed = True
                return None
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    closed = False

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def listen(path: str) -> socket.socket:
    """Open a place where the other side can reach this one."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(path)
    server.listen(1)
    return server


def connect(path: str) -> Line:
    """Reach the other side, which may still have to open its place."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
        except OSError:
            connection.close()
            if time.monotonic() > deadline:
                raise ToolError("the other worker could not be reached", where=path) from None
            time.sleep(0.01)
            continue
        return Line(connection)


def knock(path: str) -> None:
    """Let go whoever waits at a place for a peer that is gone."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.connect(path)


class Sender:
    """The side that makes tensors.

    Args:
        line: to the receiver.
        pool: file of the pool, which exists and has its size.
        overflow: folder for tensors that do not fit.
    """

    def __init__(self, line: Line, pool: Path, overflow: Path) -> None:
        self._line = line
        self._overflow = overflow
        self._size = pool.stat().st_size
        with pool.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), self._size)
        self._taken: dict[int, int] = {}
        self._awaited: int | None = None
        self._files = 0

    def put(self, tensor: TracedTensor, values: Array | None) -> None:
        """Send one tensor; its values are copied before this returns."""
        message: dict[str, Any] = {"tensor": _plain(tensor)}
        if values is not None:
            message |= {"dtype": values.dtype.str, "shape": list(values.shape)}
            place = self._room(values.nbytes)
            if place is None:
                self._files += 1
                path = self._overflow / f"{tensor.index}-{self._files}.bin"
                np.ascontiguousarray(values).tofile(path)
                message["file"] = str(path)
            else:
                target = _view(self._memory, place, values.dtype, values.shape)
                np.copyto(target, values)
                del target
                message["place"] = place
        if tensor.value == self._awaited:
            self._awaited = None
        self._line.send(message)

    def end(self) -> None:
        """Say that nothing more will come."""
        self._line.send({"end": True})

    def _room(self, size: int) -> int | None:
        self._listen(0.0)
        while True:
            place = self._gap(size)
            if place is not None:
                self._taken[place] = size
                return place
            if size > self._size or self._awaited is not None or self._line.closed:
                return None
            self._listen(_PATIENCE)

    def _gap(self, size: int) -> int | None:
        start = 0
        for place, taken in sorted(self._taken.items()):
            if start + size <= place:
                break
            start = -(-(place + max(taken, 1)) // _ALIGN) * _ALIGN
        return start if start + size <= self._size else None

    def _listen(self, timeout: float) -> None:
        message = self._line.receive(timeout)
        while message is not None:
            if "free" in message:
                self._taken.pop(message["free"], None)
            else:
                self._awaited = message["need"]
            message = self._line.receive(0.0)


class Receiver:
    """The side that looks at tensors.

    Args:
        line: to the sender.
        pool: file of the pool.
    """

    def __init__(self, line: Line, pool: Path) -> None:
        self._line = line
        with pool.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), pool.stat().st_size)
        self._here: dict[int, dict[str, Any]] = {}
        self._ended = False

    def take(self, value: int) -> TracedTensor | None:
        """Wait for the tensor that holds a value; None when it will not come."""
        if value not in self._here and not self._ended:
            self._line.send({"need": value})
        while value not in self._here and not self._ended:
            self._arrive(self._line.receive())
        message = self._here.get(value)
        return None if message is None else _traced(message)

    def values(self, value: int) -> Array | None:
        """Return the values of a tensor that has come: a view, good until ``free``."""
        message = self._here[value]
        if "place" in message:
            return _view(
                self._memory, message["place"], np.dtype(message["dtype"]), message["shape"]
            )
        if "file" in message and not np.prod(message["shape"]):
            return np.empty(message["shape"], message["dtype"])
        if "file" in message:
            return np.memmap(
                message["file"], np.dtype(message["dtype"]), "r", shape=tuple(message["shape"])
            )
        return None

    def free(self, value: int) -> None:
        """Give back the place of a tensor."""
        message = self._here.pop(value)
        if "place" in message:
            self._line.send({"free": message["place"]})
        elif "file" in message:
            Path(message["file"]).unlink(missing_ok=True)

    def rest(self) -> Iterator[TracedTensor]:
        """Yield, once the sender has ended, what nobody has taken."""
        while not self._ended:
            self._arrive(self._line.receive())
        for message in list(self._here.values()):
            yield _traced(message)

    def each(self) -> Iterator[TracedTensor]:
        """Yield every tensor as it comes."""
        while not self._ended:
            self._arrive(self._line.receive())
            for message in list(self._here.values()):
                yield _traced(message)

    def _arrive(self, message: dict[str, Any] | None) -> None:
        if message is None or "end" in message:
            self._ended = True
            return
        key = message["tensor"]["value"]
        if key in self._here:  # the same value again: what came first was shown first
            self.free(key)
        self._here[key] = message


def _view(memory: mmap.mmap, place: int, dtype: np.dtype[Any], shape: Any) -> Array:  # noqa: ANN401
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(memory, dtype, count, place).reshape(shape)


def _plain(tensor: TracedTensor) -> dict[str, Any]:
    return {name: getattr(tensor, name) for name in TracedTensor.__dataclass_fields__}


def _traced(message: dict[str, Any]) -> TracedTensor:
    fields = dict(message["tensor"])
    return TracedTensor(**{**fields, "shape": tuple(fields["shape"])})
