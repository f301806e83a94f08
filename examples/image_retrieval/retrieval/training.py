"""The training loop: the same code for the network in dygraph and under ``to_static``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional as F  # noqa: N812 (its usual name)

from retrieval.data import CLASSES, Data
from retrieval.model import STATE, WEIGHTS, build, read_state, save, set_weights
from retrieval.pairs import pairs
from retrieval.problems import ProblemError

LOSSES = "losses.csv"


@dataclass(frozen=True)
class Recipe:
    """What has to be the same for two trainings to be the same."""

    epochs: int = 10
    batches: int = 1000
    lr: float = 1e-4
    temperature: float = 0.2
    seed: int = 0


@dataclass
class Progress:
    """A training: its network, its optimizer, and the losses of all steps so far."""

    net: Any
    optimizer: Any
    to_static: bool
    losses: list[float]


def start(recipe: Recipe, *, to_static: bool) -> Progress:
    """Begin a training."""
    net = build(to_static=to_static, seed=recipe.seed)
    optimizer = paddle.optimizer.Adam(learning_rate=recipe.lr, parameters=net.parameters())
    return Progress(net, optimizer, to_static, [])


def resume(path: Path, recipe: Recipe, data: Data, *, to_static: bool) -> Progress:
    """Go on with a training after its last whole epoch.

    Raises:
        ProblemError: there is no such training, or it had another recipe or other data.
    """
    path = path / STATE if path.is_dir() else path
    state = read_state(path)
    if not {"net", "optimizer", "losses", "recipe", "to_static", "origin"} <= set(state):
        raise ProblemError(f"{path} is no state of a training: --resume takes a {STATE}")
    now = asdict(recipe) | {"to_static": to_static, "origin": data.origin}
    then = dict(state["recipe"]) | {"to_static": state["to_static"], "origin": state["origin"]}
    for name, old in then.items():
        # A training may be made longer; everything else would make it another one.
        if name != "epochs" and now.get(name) != old:
            raise ProblemError(
                f"{path} was trained with {name}={old}, not {name}={now.get(name)}: "
                "resume with the options of the first call"
            )
    progress = start(recipe, to_static=to_static)
    set_weights(progress.net, state["net"], path)
    progress.optimizer.set_state_dict(state["optimizer"])
    progress.losses = [float(loss) for loss in state["losses"]]
    return progress


def train(progress: Progress, data: Data, recipe: Recipe, folder: Path, *, every: int) -> None:
    """Train the epochs that are left; print a line every so many batches, save after every epoch.

    Raises:
        ProblemError: the loss is not finite any more.
    """
    print("start training ...", flush=True)
    began, before = time.perf_counter(), len(progress.losses)
    for epoch in range(before // recipe.batches, recipe.epochs):
        batches = pairs(data, recipe.batches, seed=recipe.seed, epoch=epoch)
        for batch_id, loss in enumerate(steps(progress, batches, recipe.temperature)):
            progress.losses.append(loss)
            if batch_id % every == 0:
                print(f"epoch: {epoch}, batch_id: {batch_id}, loss is: {loss:.7f}", flush=True)
            if not np.isfinite(loss):
                raise ProblemError(
                    f"the loss is {loss} in epoch {epoch}, batch {batch_id}: lower --lr"
                )
        write(progress, data, recipe, folder)
    seconds = time.perf_counter() - began
    number = len(progress.losses) - before
    speed = f", {1000 * seconds / number:.1f} ms a step" if number else ""
    print(f"trained {number} steps in {seconds:.1f} s{speed}", flush=True)


def steps(progress: Progress, batches: Iterator[Any], temperature: float) -> Iterator[float]:
    """Take a step for every batch, yielding its loss.

    Each anchor has to find its own class among the ten positives: a classification whose logits are
    the cosines between the vectors, divided by the temperature.
    """
    progress.net.train()
    inverse_temperature = paddle.to_tensor(np.array([1.0 / temperature], dtype="float32"))
    for anchors, positives in batches:
        anchor_embeddings = progress.net(paddle.to_tensor(anchors))
        positive_embeddings = progress.net(paddle.to_tensor(positives))
        similarities = paddle.matmul(anchor_embeddings, positive_embeddings, transpose_y=True)
        similarities = paddle.multiply(similarities, inverse_temperature)
        loss = F.cross_entropy(similarities, paddle.arange(0, CLASSES, dtype="int64"))
        loss.backward()
        progress.optimizer.step()
        progress.optimizer.clear_grad()
        yield float(loss)


def write(progress: Progress, data: Data, recipe: Recipe, folder: Path) -> None:
    """Save weights, losses, and in one further file all that a resumed training needs."""
    weights = progress.net.state_dict()
    state = {
        "net": weights,
        "optimizer": progress.optimizer.state_dict(),
        "losses": np.array(progress.losses, np.float64),
        "recipe": asdict(recipe),
        "to_static": progress.to_static,
        "origin": data.origin,
    }
    save(state, folder / STATE)
    save(weights, folder / WEIGHTS)
    lines = [f"{step},{loss:.9g}\n" for step, loss in enumerate(progress.losses)]
    beside = folder / f".{LOSSES}"
    beside.write_text("step,loss\n" + "".join(lines), encoding="utf-8")
    beside.replace(folder / LOSSES)


def read_losses(folder: Path) -> list[float]:
    """Read the losses of a training.

    Raises:
        ProblemError: there is no such training.
    """
    path = folder / LOSSES
    if not path.is_file():
        raise ProblemError(f"{path} does not exist: {folder} holds no finished epoch of a training")
    try:
        rows = path.read_text(encoding="utf-8").splitlines()[1:]
        return [float(row.split(",")[1]) for row in rows]
    except (ValueError, IndexError):
        raise ProblemError(f"{path} is damaged: it is not a table of step and loss") from None
