"""Quantisation: PACT while training, KL or abs-max after it.

It comes from the package tipcheck. Everything else in this repository works without that package;
whatever needs it says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mobilenet.problems import ProblemError

# The line by which an export tells `tipcheck run` that it succeeded and tested nothing.
HOLLOW = "tipcheck: hollow: no op is quantised"
_QUANTERS = (".activation_quanter.", ".weight_quanter.")


def library() -> Any:
    """Return tipcheck's quantisation.

    Raises:
        ProblemError: it is not installed.
    """
    try:
        import tipcheck.quant  # noqa: PLC0415 - only where something is quantised
    except ModuleNotFoundError as error:
        raise ProblemError(
            "quantisation comes from the package tipcheck, which this Python does not have "
            f"({error}): pip install -e FOLDER, where FOLDER is a checkout of tipcheck"
        ) from None
    return tipcheck.quant


def is_quantised(state: Mapping[str, Any]) -> bool:
    """Whether a checkpoint is that of a quantised network; to see that needs no library."""
    return any(part in name for name in state for part in _QUANTERS)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Turn what the library refuses into one line for the user."""
    from tipcheck.errors import TipcheckError  # noqa: PLC0415 - as above

    try:
        yield
    except TipcheckError as error:
        raise ProblemError(str(error)) from None


def quantised(net: Any) -> Any:
    """Return a network with PACT quanters in it, not calibrated yet.

    Raises:
        ProblemError: the library is missing.
    """
    return library().quantise(net)


def rebuilt(net: Any, state: Mapping[str, Any]) -> Any:
    """Return the quantised network of a checkpoint.

    Args:
        net: the network as it was before it was quantised.
        state: what the checkpoint holds.

    Raises:
        ProblemError: the library is missing, or the checkpoint is of another network.
    """
    quant = library()
    with told():
        return quant.rebuild(net, state)


def calibrate(net: Any, batches: Iterable[Any], method: str, *, training: bool = False) -> int:
    """Choose the clipping values from some batches of images; return how many there are.

    Args:
        net: the quantised network.
        batches: of images.
        method: quantile, kl or abs_max.
        training: look at the values of a training, with the statistics of each batch. Early in one
            the running statistics are far behind.

    Raises:
        ProblemError: there is no image, or one of the values is not finite.
    """

    def train(images: Any) -> None:
        net.train()
        net(images)

    quant = library()
    with told():
        return len(quant.calibrate(net, batches, method, forward=train if training else None))


def export(net: Any, path: Path, spec: Any, samples: Any) -> int:
    """Write the program that computes what the quantised network computes; say what is in it.

    The library runs it on every stage that Paddle Inference has here before it hands it out.

    Args:
        net: the quantised network.
        path: where to, without an ending.
        spec: the InputSpec.
        samples: images, as an array, to check it with.

    Returns:
        How many ops are quantised.

    Raises:
        ProblemError: a stage gives other answers; nothing is written then.
    """
    quant = library()
    with told():
        saved = quant.save(net, str(path), [spec], inputs=[samples])
    count = int(saved.quantised_ops)
    if not count:
        print(HOLLOW)
    return count


def clip_penalty(net: Any) -> Any:
    """Return PACT's L2 term on the clipping values, which a training adds to its loss."""
    return library().clip_penalty(net)


def clips(net: Any) -> list[float]:
    """Return the clipping values of all layers."""
    return [float(value) for values in library().clips(net).values() for value in values]
