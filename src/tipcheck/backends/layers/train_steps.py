"""Trains a few steps in a worker, in dygraph or under ``to_static``, and keeps what each step gave.

Run as ``python -m tipcheck.backends.layers.train_steps`` by ``run_worker``, once for each way, from
the same seeds. The user's factory returns the four things that a training step is made of.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tipcheck.backends.isolation import answer_request
from tipcheck.backends.layers.source import find_object
from tipcheck.backends.told import told

PARTS = ("model", "optimizer", "loss", "data")
"""What a factory returns, in this order, or by these names."""
Answer = Callable[[dict[str, Any]], None]


def work(request: dict[str, Any], answer: Answer) -> None:
    """Answer one request.

    Args:
        request: ``source``, ``path``, ``static``, ``steps``, ``seed`` and the ``folder`` for
            ``before.npz`` and one ``step_N.npz`` after each step.
        answer: takes what is known after each step.
    """
    import paddle

    random.seed(request["seed"])
    np.random.seed(request["seed"])  # noqa: NPY002 - what user code draws from
    paddle.seed(request["seed"])
    try:
        factory = find_object(request["source"], tuple(request["path"]))
        model, optimizer, loss, data = _parts(factory() if callable(factory) else factory)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is the answer
        answer({"no_parts": told(error)})
        return
    if request["static"]:
        model = paddle.jit.to_static(model, full_graph=True)
    model.train()
    folder = Path(request["folder"])
    np.savez(folder / "before.npz", **_parameters(model))
    answer({"parameters": [name for name, _ in model.named_parameters()]})
    batches = iter(data() if callable(data) else data)
    for number, batch in enumerate(itertools.islice(batches, request["steps"])):
        try:
            answer(_step(model, optimizer, loss, _tensors(batch), folder / f"step_{number}.npz"))
        except (Exception, SystemExit) as error:  # noqa: BLE001, PERF203
            answer({"problem": told(error), "step": number})
            return
    answer({"done": True})


def _step(model: Any, optimizer: Any, loss: Any, batch: list[Any], path: Path) -> dict[str, Any]:  # noqa: ANN401
    """Train one step; write gradients and parameters; return the loss and what the data was."""
    value = loss(model, *batch)
    value.backward()
    gradients = {
        f"gradient of {name}": parameter.grad.numpy()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    optimizer.step()
    optimizer.clear_grad()
    np.savez(path, loss=value.numpy(), **gradients, **_parameters(model))
    return {"loss": float(np.asarray(value.numpy()).reshape(-1)[0]), "data": _digest(batch)}


def _parts(made: Any) -> tuple[Any, ...]:  # noqa: ANN401
    if isinstance(made, Mapping):
        missing = [name for name in PARTS if name not in made]
        if missing:
            raise ValueError(f"the factory gave no {missing[0]!r}")
        return tuple(made[name] for name in PARTS)
    if isinstance(made, tuple) and len(made) == len(PARTS):
        return made
    raise ValueError(f"the factory has to return ({', '.join(PARTS)})")


def _parameters(model: Any) -> dict[str, Any]:  # noqa: ANN401
    return {name: parameter.numpy() for name, parameter in model.state_dict().items()}


def _tensors(batch: Any) -> list[Any]:  # noqa: ANN401
    import paddle

    items: Iterable[Any] = batch if isinstance(batch, (list, tuple)) else [batch]
    return [item if hasattr(item, "numpy") else paddle.to_tensor(item) for item in items]


def _digest(batch: list[Any]) -> str:
    import hashlib

    total = hashlib.blake2b(digest_size=8)
    for item in batch:
        total.update(np.ascontiguousarray(item.numpy()).tobytes())
    return total.hexdigest()


if __name__ == "__main__":
    answer_request(work)
