"""The network, as it is and decorated for the graph, and its checkpoints."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional as F  # noqa: N812 (its usual name)

from retrieval.data import CLASSES
from retrieval.problems import ProblemError

WEIGHTS = "latest.pdparams"
STATE = "latest.pdstates"


class MyNet(paddle.nn.Layer):  # type: ignore[misc]
    """Three convolutions, a mean over all places, and a vector of length 1 in eight dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = paddle.nn.Conv2D(3, 32, (3, 3), stride=2)
        self.conv2 = paddle.nn.Conv2D(32, 64, (3, 3), stride=2)
        self.conv3 = paddle.nn.Conv2D(64, 128, (3, 3), stride=2)
        self.global_pool = paddle.nn.AdaptiveAvgPool2D((1, 1))
        self.fc1 = paddle.nn.Linear(128, 8)

    def embed(self, x: Any) -> Any:
        """Turn images [N, 3, 32, 32] into vectors [N, 8]."""
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.relu(self.conv3(x))
        x = paddle.squeeze(self.global_pool(x), axis=[2, 3])
        x = self.fc1(x)
        return x / paddle.norm(x, axis=1, keepdim=True)

    def forward(self, x: Any) -> Any:
        """Compute op by op."""
        return self.embed(x)


class MyNet2(MyNet):
    """The same network; one line makes ``forward`` a graph, for training and for export.

    ``full_graph=True`` makes one graph of all of ``forward``, the one that ``jit.save`` exports.
    Without it Paddle splits the function where it has to; the older graph mode cannot.
    """

    @paddle.jit.to_static(full_graph=True)  # type: ignore[untyped-decorator]
    def forward(self, x: Any) -> Any:
        """Compute as a graph."""
        return self.embed(x)


def build(*, to_static: bool, seed: int) -> Any:
    """Make a network with fresh weights, the same for the same seed."""
    paddle.seed(seed)
    with paddle.utils.unique_name.guard():
        return MyNet2() if to_static else MyNet()


def summary(net: Any) -> None:
    """Print the layers of a network.

    Converted with ``full_graph=True``, its input shapes are printed as [None] by Paddle 3.3; so it
    is looked at unconverted.
    """
    paddle.jit.enable_to_static(False)  # noqa: FBT003 (that is its form)
    try:
        paddle.summary(net, (CLASSES, 3, 32, 32))
    finally:
        paddle.jit.enable_to_static(True)  # noqa: FBT003


def read_state(path: Path) -> dict[str, Any]:
    """Read a file that ``save`` wrote.

    Raises:
        ProblemError: there is no such file, or it is not such a file.
    """
    if not path.is_file():
        raise ProblemError(
            f"the checkpoint {path} does not exist: train.py writes it after an epoch"
        )
    try:
        state = paddle.load(str(path), return_numpy=True)
    except Exception as error:  # noqa: BLE001 (what Paddle raises depends on the first bytes)
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ProblemError(f"{path} is no Paddle checkpoint, or is damaged: {reason}") from None
    if not isinstance(state, dict) or not state:
        raise ProblemError(f"{path} is no Paddle checkpoint: it holds no named values")
    return state


def set_weights(net: Any, state: Mapping[str, Any], path: Path) -> None:
    """Give a network the weights of a checkpoint, all of them or none.

    Raises:
        ProblemError: the names or shapes are those of another model.
    """
    own = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    given = {name: np.shape(value) for name, value in state.items()}
    if own != given:
        name = min(own.items() ^ given.items())[0]
        raise ProblemError(
            f"{path} is a checkpoint of another model: {name} is "
            f"{list(given[name]) if name in given else 'not in it'}, in MyNet it is "
            f"{list(own[name]) if name in own else 'not there'}"
        )
    net.set_state_dict(dict(state))


def load(path: Path, *, to_static: bool = False) -> Any:
    """Make a network with the weights of a checkpoint, or of a folder that holds one.

    Raises:
        ProblemError: the checkpoint cannot be read or is of another model.
    """
    path = path / WEIGHTS if path.is_dir() else path
    net = build(to_static=to_static, seed=0)
    set_weights(net, read_state(path), path)
    net.eval()
    return net


def save(value: Mapping[str, Any], path: Path) -> None:
    """Write a file that is whole or not there, wherever the process is interrupted."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    paddle.save(dict(value), str(beside))
    beside.replace(path)
