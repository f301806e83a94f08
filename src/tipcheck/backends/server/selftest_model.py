"""The worker behind ``tipcheck selftest``: a small real model, run at every stage, and its faults.

One job makes the model from a seed, exports it, runs the stages that need nothing but Paddle, and
works out what each kind of fault does to the answers: the difference between the broken and the
right model, in float64, so that it is free of noise and can be given any size.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.inputs.drawn import Size, make_feed
from tipcheck.backends.predictor import make_predictor, run_predictor
from tipcheck.backends.server.jobs import save_outputs
from tipcheck.backends.subject import InputSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Answer = Callable[[Mapping[str, Any]], None]

SPEC = InputSpec("image", (-1, 3, 16, 16), "float32")
SETS = (("normal", 4), ("uniform", 4), ("ties", 4))
STAGES = ("eager", "to_static", "jit_load", "executor", "inference", "inference_ir", "onednn")
FAULTS = (
    "one weight changed",
    "weights of one layer scaled",
    "epsilon of a normalisation",
    "bias dropped",
    "activation dropped",
    "shortcut dropped",
    "activation replaced",
    "weight transposed",
    "weights in half precision",
    "parameters not loaded",
    "dropout left on",
    "scale before the softmax",
)


def record(job: Mapping[str, Any], answer: Answer) -> None:
    """Run the model at every stage, then break it in every way."""
    import paddle

    folder = Path(job["room"])
    seed = int(job["seed"])
    random = np.random.default_rng(seed)
    paddle.seed(seed)
    layer = _model(paddle)
    feeds = [make_feed([SPEC], kind, Size(batch=batch), seed) for kind, batch in SETS]
    for number, feed in enumerate(feeds):
        np.savez(folder / f"inputs_{number}.npz", **feed)  # type: ignore[arg-type]

    def keep(stage: str, run: Callable[[Any], Any]) -> None:
        for number, feed in enumerate(feeds):
            target = folder / f"{stage}_{number}.npz"
            save_outputs(run(feed), target)
        answer({"stage": stage})

    spec = paddle.static.InputSpec([None, 3, 16, 16], "float32", "image")
    with paddle.no_grad():
        keep("eager", lambda feed: _arrays(layer(paddle.to_tensor(feed["image"]))))
        traced = paddle.jit.to_static(layer.forward, input_spec=[spec], full_graph=True)
        keep("to_static", lambda feed: _arrays(traced(paddle.to_tensor(feed["image"]))))
        layer.forward.rollback() if hasattr(layer.forward, "rollback") else None
    prefix = folder / "model"
    paddle.jit.save(layer, str(prefix), input_spec=[spec])
    loaded = paddle.jit.load(str(prefix))
    loaded.eval()
    with paddle.no_grad():
        keep("jit_load", lambda feed: _arrays(loaded(paddle.to_tensor(feed["image"]))))
    for stage in ("inference", "inference_ir", "onednn"):
        predictor = make_predictor(prefix.with_suffix(".json"), stage)
        keep(stage, lambda feed, it=predictor: run_predictor(it, feed))  # type: ignore[misc]
    _break(paddle, layer, feeds, random, folder, answer)
    _run_programs(prefix.with_suffix(".json"), feeds, folder, keep)


def _run_programs(model: Path, feeds: list[Any], folder: Path, keep: Any) -> None:  # noqa: ANN401
    """Run the export on the static executor, as it is and in float64; the process stays static."""
    from tipcheck.backends.exports.widened import widen
    from tipcheck.backends.stages.executor import ProgramRunner

    keep("executor", ProgramRunner(model).run)
    wide = ProgramRunner(widen(model, folder))
    keep("referee", lambda feed: wide.run({"image": feed["image"].astype(np.float64)}))
    del feeds


def _arrays(outputs: Any) -> list[Any]:  # noqa: ANN401 - Paddle has no types
    return [output.numpy() for output in outputs]


def _break(
    paddle: Any,  # noqa: ANN401
    layer: Any,  # noqa: ANN401
    feeds: list[Any],
    random: np.random.Generator,
    folder: Path,
    answer: Answer,
) -> None:
    """Write, per kind of fault and input set, what it adds to the answers."""
    wide = _model(paddle)
    wide.set_state_dict(layer.state_dict())
    wide.to(dtype="float64")
    wide.eval()
    wide_feeds = [paddle.to_tensor(feed["image"].astype(np.float64)) for feed in feeds]
    with paddle.no_grad():
        right = [_arrays(wide(feed)) for feed in wide_feeds]
        for index, kind in enumerate(FAULTS):
            restore = {name: value.numpy().copy() for name, value in wide.state_dict().items()}
            told = _apply(paddle, wide, kind, random)
            for number, feed in enumerate(wide_feeds):
                broken = _arrays(wide(feed))
                added = [b - r for b, r in zip(broken, right[number], strict=True)]
                save_outputs(added, folder / f"fault_{index}_{number}.npz")
            answer({"fault": kind, "place": told})
            wide.broken = ""
            wide.eval()
            for name, value in wide.state_dict().items():
                value.set_value(paddle.to_tensor(restore[name]))
            wide.norm._epsilon = 1e-5  # noqa: SLF001 - Paddle has no public setter


def _apply(paddle: Any, net: Any, kind: str, random: np.random.Generator) -> str:  # noqa: ANN401
    """Break a model in one way; return where."""
    names = ["first", "second", "head", "query"]
    if kind == "bias dropped":
        names.remove("query")  # it adds the same to a whole row of the softmax: no fault at all
    name = names[int(random.integers(len(names)))]
    part = getattr(net, name)
    weight = part.weight
    values = weight.numpy().copy()
    if kind == "one weight changed":
        at = tuple(int(random.integers(extent)) for extent in values.shape)
        values[at] += 0.5 * float(np.std(values)) + 0.01
    elif kind == "weights of one layer scaled":
        values *= 1.05
    elif kind == "weight transposed":
        part, name = net.query, "query"
        weight = part.weight
        values = weight.numpy().T.copy()
    elif kind == "weights in half precision":
        values = values.astype(np.float16).astype(np.float64)
    elif kind == "parameters not loaded":
        values = random.standard_normal(values.shape) * float(np.std(values))
    elif kind == "bias dropped":
        part.bias.set_value(paddle.zeros(part.bias.shape, "float64"))
        return name
    elif kind == "epsilon of a normalisation":
        net.norm._epsilon = 1e-3  # noqa: SLF001 - Paddle has no public setter
        return "norm"
    elif kind == "dropout left on":
        net.drop.training = True
        return "drop"
    else:
        net.broken = kind
        return "forward"
    weight.set_value(paddle.to_tensor(values))
    return f"{name}.weight"


def _model(paddle: Any) -> Any:  # noqa: ANN401
    """Return a small model with what models are made of: convolution, norm, attention, product."""
    nn, functional = paddle.nn, paddle.nn.functional

    class Small(nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2D(3, 16, 3, padding=1, stride=2)
            self.second = nn.Conv2D(16, 16, 3, padding=1)
            self.norm = nn.LayerNorm(16)
            self.query = nn.Linear(16, 16)
            self.drop = nn.Dropout(0.1)
            self.head = nn.Linear(16, 12)
            for part in (self.first, self.second, self.query, self.head):
                part.bias.set_value(paddle.randn(part.bias.shape) * 0.1)
            self.broken = ""

        def forward(self, image: Any) -> Any:  # noqa: ANN401
            hidden = self.first(image)
            if self.broken != "activation dropped":
                hidden = functional.relu(hidden)
            more = self.second(hidden)
            hidden = more if self.broken == "shortcut dropped" else hidden + more
            rows = self.norm(hidden.flatten(2).transpose([0, 2, 1]))
            keys = self.query(rows)
            scale = 0.3 if self.broken == "scale before the softmax" else 0.25
            share = functional.softmax(paddle.matmul(rows, keys, transpose_y=True) * scale)
            rows = self.drop(paddle.matmul(share, rows)) + rows
            approximate = self.broken == "activation replaced"
            rows = functional.gelu(rows, approximate=approximate)
            return self.head(rows.mean(axis=1)), rows, hidden

    layer = Small()
    layer.eval()
    return layer
