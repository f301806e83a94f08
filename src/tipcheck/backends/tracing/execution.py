"""What one execution of a model computes on the way: its graph, its trace, its values.

Values come one at a time, through a bounded piece of shared memory, while the model runs in a
worker process. An array is good until the next one is asked for.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck import wire
from tipcheck.backends.graph import Graph
from tipcheck.backends.trace import Trace, TracedTensor
from tipcheck.backends.tracing.pool import Line, Receiver, listen
from tipcheck.backends.tracing.run_modes import ModeSettings
from tipcheck.backends.tracing.session import Session

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import numpy.typing as npt

    Array = npt.NDArray[Any]

POOL = 64 << 20
"""Bytes of shared memory between two processes, when nothing else is said."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One way of running one model.

    Attributes:
        model: the exported model, ``.json``, ``.pdmodel`` or ``.onnx``.
        run_mode: one of ``run_modes.known_modes()``.
        settings: what the mode is told; None for the defaults.
    """

    model: Path
    run_mode: str
    settings: ModeSettings | None = None

    @contextlib.contextmanager
    def start(self, inputs: Path | None = None) -> Iterator[Session]:
        """Give the worker that does it; it is loading when this returns."""
        session = Session(self.model, self.run_mode, self.settings, inputs=inputs)
        session.open()
        try:
            yield session
        except BaseException:
            session.kill()
            raise
        finally:
            session.close()


def graph_of(session: Session) -> Graph:
    """Return the graph that a session runs."""
    file = session.folder / "graph.json"
    session.ask({"do": "graph", "file": str(file)})
    return wire.loads(file.read_bytes(), Graph, source=str(file))


def read_graph(
    model: Path,
    run_mode: str,
    settings: ModeSettings | None = None,
    inputs: Path | None = None,
) -> Graph:
    """Return the graph of a model in a run mode; it is loaded in a worker and not run."""
    with Execution(model, run_mode, settings).start(inputs) as session:
        return graph_of(session)


def trace(model: Path, run_mode: str, inputs: Path, settings: ModeSettings | None = None) -> Trace:
    """Run a model once and return what it computed on the way, without the values."""
    tensors: list[TracedTensor] = []
    with Execution(model, run_mode, settings).start(inputs) as session:
        order = {"do": "list", "inputs": str(inputs.resolve())}
        session.ask(
            {**order, "outputs": str(session.folder / "outputs.npz")},
            lambda event: tensors.append(traced_of(event)) if "tensor" in event else None,
        )
    return Trace(run_mode, tuple(tensors))


def values(
    execution: Execution, inputs: Path, want: Collection[int] | None = None, pool: int = POOL
) -> Iterator[tuple[TracedTensor, Array | None]]:
    """Run a model and yield the tensors it computes, each with its values.

    Args:
        execution: what to run.
        inputs: an ``.npz`` file.
        want: ids of values, as in the graph; None means all that have one.
        pool: bytes of shared memory to use.
    """
    with execution.start(inputs) as session:
        session.wait()
        yield from stream(session, inputs, want, pool)


def stream(
    session: Session, inputs: Path, want: Collection[int] | None = None, pool: int = POOL
) -> Iterator[tuple[TracedTensor, Array | None]]:
    """Do the same in a session that is loaded."""
    with shared_pool(pool) as (file, folder):
        peer = str(folder / "peer")
        server = listen(peer)
        order = {
            "do": "send",
            "peer": peer,
            "pool": str(file),
            "inputs": str(inputs.resolve()),
            "outputs": str(session.folder / "outputs.npz"),
            "want": None if want is None else sorted(want),
        }
        failed: list[BaseException] = []
        asking = threading.Thread(target=_ask, args=(session, order, failed), daemon=True)
        asking.start()
        try:
            line = _accept(server, asking)
            if line is not None:
                receiver = Receiver(line, file)
                for tensor in receiver.each():
                    yield tensor, receiver.values(tensor.value)
                    receiver.free(tensor.value)
                line.send({"looked": True})
                line.close()
        finally:
            server.close()
            asking.join(20.0)
        if failed:
            raise failed[0]


def _ask(session: Session, order: dict[str, Any], failed: list[BaseException]) -> None:
    try:
        session.ask(order)
    except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
        failed.append(error)


def _accept(server: Any, asking: threading.Thread) -> Line | None:  # noqa: ANN401 - a socket
    import select

    while not select.select([server], [], [], 0.1)[0]:
        if not asking.is_alive():
            return None
    return Line(server.accept()[0])


@contextlib.contextmanager
def shared_pool(size: int) -> Iterator[tuple[Path, Path]]:
    """Give a file of a size in memory where the system has such a place, and a folder."""
    memory = Path("/dev/shm")  # noqa: S108 - where Linux keeps shared memory
    with (
        tempfile.TemporaryDirectory(prefix="tipcheck-") as folder,
        tempfile.NamedTemporaryFile(
            prefix="tipcheck-", dir=memory if memory.is_dir() else folder
        ) as file,
    ):
        file.truncate(size)
        yield Path(file.name), Path(folder)


def traced_of(event: dict[str, Any]) -> TracedTensor:
    """Return the tensor that a worker tells of."""
    fields = dict(event["tensor"])
    return TracedTensor(**{**fields, "shape": tuple(fields["shape"])})
