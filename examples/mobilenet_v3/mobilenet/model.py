"""The network, and what is read from and written to its checkpoints."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from mobilenet.problems import ProblemError
from mobilenet.quantised import is_quantised, rebuilt

MODELS = {
    "mobilenet_v3_small": paddle.vision.models.mobilenet_v3_small,
    "mobilenet_v3_large": paddle.vision.models.mobilenet_v3_large,
}
_HEAD = "classifier.3.weight"


def build(model: str, classes: int) -> Any:
    """Make a network with fresh weights.

    The running statistics of Paddle's MobileNetV3 keep 99 % of their old value in each step:
    right for hundreds of thousands of steps, useless for the fifty of a lite training. Here they
    keep 90 %.
    """
    net = MODELS[model](num_classes=classes)
    for parent in net.sublayers(include_self=True):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, paddle.nn.BatchNorm2D):
                channels = layer.weight.shape[0]
                parent.add_sublayer(name, paddle.nn.BatchNorm2D(channels, 0.9, 1e-3))
    return net


def read_state(path: Path) -> dict[str, Any]:
    """Read what ``paddle.save`` wrote; the suffix ``.pdparams`` may be left out.

    Raises:
        ProblemError: there is no such file, or it is not such a file.
    """
    if not path.is_file() and path.with_name(path.name + ".pdparams").is_file():
        path = path.with_name(path.name + ".pdparams")
    if not path.is_file():
        raise ProblemError(f"the checkpoint {path} does not exist")
    try:
        state = paddle.load(str(path), return_numpy=True)
    except Exception as error:  # noqa: BLE001 (what Paddle raises depends on the first bytes)
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ProblemError(f"{path} is not a Paddle checkpoint, or is damaged: {reason}") from None
    if not isinstance(state, dict) or not state:
        raise ProblemError(f"{path} is not a Paddle checkpoint: it holds no named tensors")
    return state


def load(model: str, path: Path, *, classes: int | None = None) -> Any:
    """Make a network with the weights of a checkpoint; of a quantised one, a quantised network.

    Args:
        model: name of the network.
        path: the checkpoint.
        classes: how many classes it has to have; None for as many as the checkpoint has.

    Raises:
        ProblemError: the checkpoint cannot be read or belongs to another network.
    """
    state = read_state(path)
    if classes is None:
        shape = np.shape(state.get(_HEAD, 0))
        if len(shape) != 2:
            raise ProblemError(f"{path} is not a checkpoint of {model}: it has no {_HEAD}")
        classes = int(shape[1])
    net = build(model, classes)
    if not is_quantised(state):
        set_state(net, state, path, f"{model} with {classes} classes")
        return net
    try:
        return rebuilt(net, state)
    except ProblemError as problem:
        raise ProblemError(f"{path} is a quantised checkpoint: {problem}") from None


def set_state(net: Any, state: Mapping[str, Any], path: Path, what: str) -> None:
    """Give a network the values of ``state``, all of them or none.

    Raises:
        ProblemError: the names or shapes differ.
    """
    own = net.state_dict()
    missing = [name for name in own if name not in state]
    foreign = [name for name in state if name not in own]
    differ = [n for n in own if n in state and tuple(own[n].shape) != np.shape(state[n])]
    if missing or foreign or differ:
        example = (
            f"{differ[0]} is {list(np.shape(state[differ[0]]))}, not {list(own[differ[0]].shape)}"
            if differ
            else f"for example {(missing or foreign)[0]}"
        )
        raise ProblemError(
            f"{path} is not a checkpoint of {what}: {len(missing)} tensors are missing, "
            f"{len(foreign)} are foreign, {len(differ)} have another shape; {example}"
        )
    net.set_state_dict(dict(state))


def save(value: Mapping[str, Any], path: Path) -> None:
    """Write a file that is either whole or not there, wherever the process is interrupted."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    paddle.save(dict(value), str(beside))
    beside.replace(path)


def parameter_hash(net: Any) -> str:
    """Return a hash of all parameters and running statistics: equal on all ranks."""
    digest = hashlib.sha256()
    for name, tensor in sorted(net.state_dict().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensor.astype("float32").numpy()).tobytes())
    return digest.hexdigest()[:16]
