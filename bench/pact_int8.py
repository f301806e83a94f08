"""PACT on Fashion-MNIST: what quantising costs, and whether every stage keeps the answers.

A small ResNet is trained in floats, then fine-tuned with PACT at 8 and at 4 bits. The whole test
set says what that costs; the first 1,000 test images go through every stage of the saved model.

`python bench/pact_int8.py` prints the tables of all seeds, `--seed N` runs one of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle
from paddle import inference, nn

sys.path.insert(0, str(Path(__file__).parent))

from fashion_mnist import load
from ratios import Row, Table, interleaved, markdown
from tipcheck import quant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

TITLE = "PACT and int8"
SEEDS = (1, 2, 3)
BATCH = 128
EPOCHS = 3
TUNED = 20_000
SHOWN = 1000
STAGES = {
    "json": ("plain", "passes", "onednn"),
    "pdmodel": ("plain", "passes", "onednn", "onednn_int8"),
}
HOW = (
    "A ResNet of 20 thousand weights on Fashion-MNIST, its whole test set; trained in floats for "
    f"{EPOCHS} epochs, then fine-tuned with PACT on {TUNED:,} images at a lower rate; the worst of "
    f"{len(SEEDS)} seeds. Stages: Paddle Inference without passes, with passes, with oneDNN and "
    f"with oneDNN int8, on the first {SHOWN:,} test images, against the fake-quantised model in "
    "dygraph. "
    "Points are percent of the test set."
)


def measure() -> Table:
    """Run every seed in a process of its own, and keep the worst of each figure."""
    runs = []
    for seed in SEEDS:
        print(f"seed {seed} ...", flush=True)
        command = [sys.executable, __file__, "--seed", str(seed), "--json"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(runs[-1]), flush=True)
    return Table(HOW, rows(runs))


def rows(runs: list[dict[str, float]]) -> tuple[Row, ...]:
    """Return the rows of some seeds."""

    def least(name: str) -> float:
        return min(run[name] for run in runs)

    def most(name: str) -> float:
        return max(run[name] for run in runs)

    lost = max(run["fp32"] - run["pact8"] for run in runs)
    gained = min(run["pact4"] - run["abs_max4"] for run in runs)
    return (
        Row("accuracy in floats", least("fp32"), "%", "at least 85"),
        Row("lost with PACT at 8 bits", lost, "points", "at most 1.5"),
        Row(
            "lost with KL calibration at 8 bits", max(r["fp32"] - r["kl8"] for r in runs), "points"
        ),
        Row("accuracy with PACT at 4 bits", least("pact4"), "%"),
        Row("PACT above abs-max calibration at 4 bits", gained, "points", "at least 0.01"),
        Row("int8: accuracy", least("int8_accuracy"), "%", "at least 80"),
        Row("int8: classes predicted", least("int8_classes"), "of 10", "at least 10"),
        Row("int8: decisions as in dygraph", least("int8_same"), "%", "at least 98"),
        Row("int8: ops that run in int8", least("int8_share"), "%", "at least 100"),
        Row("int8: largest difference", most("int8_gap") / 1e-4, "x 1e-4"),
        Row("other stages: largest difference", most("other_gap") / 1e-4, "x 1e-4", "at most 1"),
        Row("int8 against the float model, oneDNN", least("faster"), "x faster"),
    )


def run_seed(seed: int, folder: Path) -> dict[str, float]:
    """Train, quantise, save and compare once."""
    paddle.seed(seed)
    train, test = load("train"), load("t10k")
    net = make_net()
    fit(net, train, 0.05, seed, epochs=EPOCHS)
    found = {"fp32": accuracy(net, test)}
    samples = [train[0][start : start + BATCH] for start in range(0, 8 * BATCH, BATCH)]
    for bits in (8, 4):
        scheme = quant.QuantScheme(activation_bits=bits, weight_bits=bits)
        made = quant.quantise(net, scheme)
        method = "kl" if bits == 8 else "abs_max"
        quant.calibrate(made, samples, method)
        found[f"{method}{bits}"] = accuracy(made, test)
        made = quant.quantise(net, scheme)
        quant.calibrate(made, samples, "quantile")
        some = (train[0][:TUNED], train[1][:TUNED])
        fit(made, some, 0.01, seed + 100, penalty=quant.clip_penalty)
        found[f"pact{bits}"] = accuracy(made, test)
        if bits == 8:
            found |= stages(made, net, test, folder)
    return found


def make_net() -> Any:
    """Return a small ResNet for one channel of 28x28 pixels."""

    def conv(inside: int, outside: int, stride: int) -> Any:
        layer = nn.Conv2D(inside, outside, 3, stride=stride, padding=1, bias_attr=False)
        return nn.Sequential(layer, nn.BatchNorm2D(outside))

    class Block(nn.Layer):  # type: ignore[misc]
        def __init__(self, inside: int, outside: int, stride: int) -> None:
            super().__init__()
            self.first = conv(inside, outside, stride)
            self.second = conv(outside, outside, 1)
            self.short = nn.Conv2D(inside, outside, 1, stride=stride) if stride > 1 else None
            self.relu = nn.ReLU()

        def forward(self, x: Any) -> Any:
            short = x if self.short is None else self.short(x)
            return self.relu(self.second(self.relu(self.first(x))) + short)

    return nn.Sequential(
        conv(1, 16, 2),
        nn.ReLU(),
        Block(16, 16, 1),
        Block(16, 32, 2),
        nn.AdaptiveAvgPool2D(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def fit(
    net: Any,
    data: tuple[NDArray[Any], NDArray[Any]],
    rate: float,
    seed: int,
    *,
    epochs: int = 1,
    penalty: Any = None,
) -> None:
    """Train a network, its learning rate falling to 0."""
    images, labels = data
    steps = epochs * (len(labels) // BATCH)
    schedule = paddle.optimizer.lr.CosineAnnealingDecay(rate, steps)
    optimizer = paddle.optimizer.Momentum(schedule, 0.9, parameters=net.parameters())
    net.train()
    random = np.random.default_rng(seed)
    order = np.concatenate([random.permutation(len(labels)) for _ in range(epochs)])
    for batch in order[: steps * BATCH].reshape(steps, BATCH):
        out = net(paddle.to_tensor(images[batch]))
        loss = paddle.nn.functional.cross_entropy(out, paddle.to_tensor(labels[batch]))
        if penalty is not None:
            loss = loss + penalty(net)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()


def answers(net: Any, images: NDArray[Any]) -> NDArray[Any]:
    """Return the outputs of a network in evaluation mode."""
    net.eval()
    with paddle.no_grad():
        parts = [net(paddle.to_tensor(images[i : i + 500])) for i in range(0, len(images), 500)]
    return np.concatenate([part.numpy() for part in parts])


def accuracy(net: Any, data: tuple[NDArray[Any], NDArray[Any]]) -> float:
    """Return how many percent of the images are put into their class."""
    return float(100 * np.mean(answers(net, data[0]).argmax(1) == data[1]))


def stages(
    made: Any, net: Any, test: tuple[NDArray[Any], NDArray[Any]], folder: Path
) -> dict[str, float]:
    """Save a quantised network in both formats and run every stage."""
    images, labels = test[0][:SHOWN], test[1][:SHOWN]
    right = answers(made, images)
    spec = [paddle.static.InputSpec([None, 1, 28, 28], "float32", "image")]
    found: dict[str, float] = {"other_gap": 0.0}
    saved = {}
    for format_, names in STAGES.items():
        path = folder / format_ / "inference"
        saved[format_] = quant.save(made, path, spec, inputs=[images[:64]], format=format_)
        for name in names:
            out = predict(path, format_, name, images)
            gap = float(np.abs(out - right).max())
            print(f"{format_} {name}: largest difference {gap:.3g}", flush=True)
            if name != "onednn_int8":
                found["other_gap"] = max(found["other_gap"], gap)
                continue
            choices = out.argmax(1)
            found["int8_gap"] = gap
            found["int8_accuracy"] = float(100 * np.mean(choices == labels))
            found["int8_classes"] = len(set(choices.tolist()))
            found["int8_same"] = float(100 * np.mean(choices == right.argmax(1)))
    found["int8_share"] = 100 * saved["pdmodel"].int8_ops / saved["pdmodel"].quantised_ops
    net.eval()
    paddle.jit.save(net, str(folder / "float" / "inference"), input_spec=spec)
    times = interleaved(
        {
            "float": runner(folder / "float" / "inference", "json", "onednn", images),
            "int8": runner(folder / "pdmodel" / "inference", "pdmodel", "onednn_int8", images),
        },
        20,
    )
    return found | {"faster": times["float"] / times["int8"]}


def runner(path: Path, format_: str, stage: str, images: NDArray[Any]) -> Any:
    """Return a function that runs the images through one stage of a saved model."""
    config = inference.Config(f"{path}.{format_}", f"{path}.pdiparams")
    config.disable_glog_info()
    config.switch_ir_optim(stage != "plain")
    if stage.startswith("onednn"):
        config.enable_mkldnn()
    else:
        config.disable_mkldnn()
    if stage == "onednn_int8":
        config.enable_mkldnn_int8()
    predictor = inference.create_predictor(config)
    source = predictor.get_input_handle(predictor.get_input_names()[0])
    target = predictor.get_output_handle(predictor.get_output_names()[0])

    def run() -> Any:
        source.copy_from_cpu(images)
        predictor.run()
        return target.copy_to_cpu()

    run()  # what is prepared once stays out of the times
    return run


def predict(path: Path, format_: str, stage: str, images: NDArray[Any]) -> NDArray[Any]:
    """Return the outputs of one stage of a saved model."""
    out: NDArray[Any] = runner(path, format_, stage, images)()
    return out


def main() -> int:
    """Run one seed, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed only")
    parser.add_argument("--json", action="store_true", help="print its figures as one line of JSON")
    args = parser.parse_args()
    if args.seed is None:
        table = measure()
    else:
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found: Mapping[str, float] = run_seed(args.seed, Path(folder))
        if args.json:
            print(json.dumps(dict(found)))
            return 0
        print(f"{time.perf_counter() - begin:.0f} s: {json.dumps(dict(found))}")
        table = Table(f"Seed {args.seed}.", rows([dict(found)]))
    print(markdown(table))
    return 0 if all(row.holds for row in table.rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
