"""A layer called as it is and as one traced program, without leaving a trace in whoever owns it.

What the user's layer and process hold (training flags, buffers, random state, whether conversion to
static is on) is as before afterwards; what the forward itself changed of the global random state is
said. Only processes that have Paddle use this: workers, and the user's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.layers.nesting import filled, leaves, tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SEED = 20180501


class LayerCall:
    """Runs a layer on flat sets of inputs."""

    def __init__(self, layer: Any, specs: Any, names: Sequence[str], *, static: bool) -> None:  # noqa: ANN401
        """Prepare a layer.

        Args:
            layer: a ``paddle.nn.Layer``.
            specs: its arguments as nested InputSpecs, one entry per argument.
            names: names of the flat inputs, in the order of the leaves of ``specs``.
            static: whether to run it as one traced program.
        """
        import paddle

        self._paddle = paddle
        self._layer = layer
        self._specs = specs
        self._names = list(names)
        self._static = static
        self.paths: tuple[str, ...] = ()
        self.notes: list[str] = []
        if static:
            self._call = paddle.jit.to_static(
                layer.forward, input_spec=list(specs), full_graph=True
            )
        else:
            self._call = layer

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        """Return the outputs as arrays, flat, in the order in which an export has them."""
        paddle = self._paddle
        tensors = [paddle.to_tensor(feed[name]) for name in self._names]
        arguments = filled(list(self._specs), tensors)
        with evaluating(self._layer), random_state(paddle) as touched:
            if self._static:
                with paddle.no_grad():
                    answer = self._call(*arguments)
            else:
                with as_it_is(paddle), paddle.no_grad():
                    answer = self._call(*arguments)
            flat = list(tensors_in(answer))
            arrays = [np.array(tensor.numpy()) for _, tensor in flat]
        for name in () if self._static else touched:  # tracing itself draws numbers
            note = f"the forward changes the global random state of {name}"
            if note not in self.notes:
                self.notes.append(note)
        self.paths = tuple(path for path, _ in flat)
        return arrays

    def clone(self) -> LayerCall:
        """Say that layers are not cloned."""
        raise NotImplementedError


@contextlib.contextmanager
def as_it_is(paddle: Any) -> Iterator[None]:  # noqa: ANN401
    """Switch conversion to static off, so that a converted layer runs op by op."""
    was = _conversion_is_on()
    paddle.jit.enable_to_static(False)  # noqa: FBT003 - its only form
    try:
        yield
    finally:
        paddle.jit.enable_to_static(was)


def _conversion_is_on() -> bool:
    from importlib import import_module

    with contextlib.suppress(ImportError, AttributeError):
        module = import_module("paddle.jit.dy2static.program_translator")
        return bool(module.ProgramTranslator.get_instance().enable_to_static)
    return True


@contextlib.contextmanager
def evaluating(layer: Any) -> Iterator[None]:  # noqa: ANN401
    """Put a layer into evaluation mode; flags and buffers are afterwards what they were."""
    everything = [layer, *layer.sublayers()]
    flags = [(part, part.training) for part in everything]
    buffers = [(buffer, buffer.clone()) for buffer in layer.buffers() if _has_value(buffer)]
    layer.eval()
    try:
        yield
    finally:
        for part, flag in flags:
            part.training = flag
        for buffer, value in buffers:
            if not bool((buffer == value).all()):
                buffer.set_value(value)


def _has_value(buffer: Any) -> bool:  # noqa: ANN401
    """Whether a buffer was ever filled; the dropout state of an LSTM is not."""
    return buffer is not None and bool(buffer._is_initialized())  # noqa: SLF001


@contextlib.contextmanager
def random_state(paddle: Any) -> Iterator[list[str]]:  # noqa: ANN401
    """Begin at a fixed random state, and put back the one there was.

    Yields a list that holds, afterwards, whose state was moved.
    """
    kept = random.getstate(), np.random.get_state(), paddle.get_rng_state()  # noqa: NPY002
    random.seed(_SEED)
    np.random.seed(_SEED)  # noqa: NPY002
    paddle.seed(_SEED)
    begun = random.getstate(), _numpy_state(), _paddle_state(paddle)
    touched: list[str] = []
    try:
        yield touched
    finally:
        ended = random.getstate(), _numpy_state(), _paddle_state(paddle)
        owners = ("Python", "numpy", "Paddle")
        touched += [name for name, a, b in zip(owners, begun, ended, strict=True) if a != b]
        random.setstate(kept[0])
        np.random.set_state(kept[1])  # noqa: NPY002
        paddle.set_rng_state(kept[2])


def _numpy_state() -> bytes:
    _, keys, place, *_ = np.random.get_state()  # noqa: NPY002
    return bytes(np.asarray(keys).tobytes()) + str(place).encode()


def _paddle_state(paddle: Any) -> str:  # noqa: ANN401
    generator = paddle.base.core.default_cpu_generator()
    words = str(generator.get_state()).split()
    return " ".join(word for word in words if not word.startswith("0x"))  # an address


def fingerprint(layer: Any) -> str:  # noqa: ANN401
    """Return a hash of every parameter and buffer of a layer, names included."""
    digest = hashlib.sha256()
    for name, value in sorted(layer.state_dict().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(value.numpy()).tobytes())
    return digest.hexdigest()[:16]


def flat_specs(specs: Any) -> list[Any]:  # noqa: ANN401
    """Return nested InputSpecs in a row."""
    return leaves(list(specs))
