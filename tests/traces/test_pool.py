"""Tensors arrive whole and in bounded memory, whatever the order in which they are wanted."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tipcheck.backends.trace import TracedTensor
from tipcheck.backends.tracing.execution import shared_pool
from tipcheck.backends.tracing.pool import Line, Receiver, Sender, connect, knock, listen


def traced(value: int) -> TracedTensor:
    return TracedTensor(value, "op", f"t{value}", "", "float32", "NCHW", (2, 3), value=value)


@contextlib.contextmanager
def both_ends(folder: Path) -> Iterator[tuple[Line, Line]]:
    with listen(str(folder / "peer")) as server:
        one = connect(str(folder / "peer"))
        other = Line(server.accept()[0])
        yield one, other
        one.close()
        other.close()


class Wire:
    """A sender in a thread, and a receiver here, over a pool of so many bytes."""

    def __init__(self, pool: Path, folder: Path, count: int, size: int) -> None:
        self._server = listen(str(folder / "peer"))
        self.arrays = [np.full((size,), value, np.float32) for value in range(count)]
        self._thread = threading.Thread(target=self._send, args=(pool, folder))
        self._thread.start()
        self._line = Line(self._server.accept()[0])
        self.receiver = Receiver(self._line, pool)

    def _send(self, pool: Path, folder: Path) -> None:
        line = connect(str(folder / "peer"))
        sender = Sender(line, pool, folder)
        for value, array in enumerate(self.arrays):
            sender.put(traced(value), array)
        sender.end()
        while line.receive() is not None:
            pass
        line.close()

    def look(self, value: int) -> None:
        tensor = self.receiver.take(value)
        assert tensor == traced(value)
        values = self.receiver.values(value)
        assert values is not None
        np.testing.assert_array_equal(values, self.arrays[value])
        del values
        self.receiver.free(value)

    def end(self) -> None:
        assert list(self.receiver.rest()) == []
        self._line.close()
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._server.close()


def test_in_order_through_a_pool_of_two() -> None:
    with shared_pool(8192) as (pool, folder):
        wire = Wire(pool, folder, 20, 1000)
        for value in range(20):
            wire.look(value)
        assert wire.receiver.take(99) is None
        wire.end()
        assert not list(folder.glob("*.bin"))


def test_against_the_order_what_does_not_fit_waits_in_files() -> None:
    with shared_pool(8192) as (pool, folder):
        wire = Wire(pool, folder, 20, 1000)
        for value in reversed(range(20)):
            wire.look(value)
        wire.end()
        assert not list(folder.glob("*.bin")), "a file was left behind"


def test_a_tensor_larger_than_the_pool() -> None:
    with shared_pool(1024) as (pool, folder):
        wire = Wire(pool, folder, 2, 5000)
        wire.look(0)
        wire.look(1)
        wire.end()


def test_empty_and_unreadable_tensors() -> None:
    with shared_pool(1024) as (pool, folder), both_ends(folder) as (one, other):
        sender, receiver = Sender(one, pool, folder), Receiver(other, pool)
        sender.put(traced(0), np.empty((0, 3), np.float32))
        sender.put(traced(1), None)
        sender.end()
        assert receiver.take(0) is not None
        empty = receiver.values(0)
        assert empty is not None
        assert empty.shape == (0, 3)
        assert receiver.take(1) is not None
        assert receiver.values(1) is None


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3).T, np.array(3.5, np.float32)])
def test_any_memory_order_and_no_axes(array: npt.NDArray[np.float64]) -> None:
    with shared_pool(1024) as (pool, folder), both_ends(folder) as (one, other):
        Sender(one, pool, folder).put(traced(4), array)
        receiver = Receiver(other, pool)
        receiver.take(4)
        arrived = receiver.values(4)
        assert arrived is not None
        np.testing.assert_array_equal(arrived, array)


def test_who_waits_for_a_peer_that_is_gone_is_let_go() -> None:
    with shared_pool(1024) as (pool, folder), listen(str(folder / "peer")) as server:
        knock(str(folder / "peer"))
        line = Line(server.accept()[0])
        assert Receiver(line, pool).take(0) is None
        line.close()
        knock(str(folder / "nobody"))
