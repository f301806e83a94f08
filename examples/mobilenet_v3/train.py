"""Train, resume and evaluate MobileNetV3: on one device, or in one process per rank.

python train.py --data-path=./lite_data --epochs=5 --batch-size=4
python train.py --amp_level=O2 --epochs=5
python train.py --pact_quant --epochs=5
python train.py --test-only --pretrained=./output/latest.pdparams
python -m paddle.distributed.launch --nproc_per_node 2 train.py --device=cpu
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

# Paddle reads its flags when it is imported. In the older graph mode no op runs in low precision on
# a CPU, so a training in mixed precision sets that mode aside, and says so. What it saves is the
# same, and the export still follows the flag.
older_graphs = os.environ.get("FLAGS_enable_pir_api", "").lower() in {"0", "false"}
older_set_aside = older_graphs and any(word.startswith("--amp_level") for word in sys.argv)
if older_set_aside:
    os.environ["FLAGS_enable_pir_api"] = "1"

import numpy as np
import paddle
import paddle.distributed as dist
from mobilenet.data import Samples, class_names, usual_size
from mobilenet.job import Job, make_optimizer
from mobilenet.model import MODELS, build, load, parameter_hash
from mobilenet.notes import read_notes
from mobilenet.precision import MixedPrecision, count_operators, keep_batch_norm_in_float32
from mobilenet.problems import ProblemError, at_least, run
from mobilenet.quantised import calibrate, clip_penalty, clips, is_quantised

LITE_DATA = Path("./lite_data")
EVAL_BATCH = 64
CALIBRATED = 14  # images that PACT's clipping values start from
LISTED = 50  # steps of an epoch that each get a line; of longer ones every tenth does


def read_arguments() -> argparse.Namespace:
    """Read the command line; what cannot work is refused here."""
    parser = argparse.ArgumentParser(description="Train or evaluate MobileNetV3.")
    add = parser.add_argument
    add("--model", choices=sorted(MODELS), default="mobilenet_v3_small")
    add("--device", choices=["auto", "cpu", "gpu"], default="auto", help="auto: a GPU if possible")
    add("--epochs", type=at_least(1), default=5)
    add("--batch-size", type=at_least(1), default=4, help="images per process and step")
    add(
        "--data-path",
        type=Path,
        help=f"the data set; default: {LITE_DATA}, for --test-only the trained one",
    )
    add("--output-dir", type=Path, default=Path("./output"), help="where latest.pdparams goes")
    add("--pretrained", type=Path, help="weights to start from, or to evaluate")
    add("--resume", type=Path, help="go on with an interrupted training: its output folder")
    add("--lr", type=float, default=0.02, help="learning rate at the start; it falls to 0")
    add("--img-size", type=at_least(32), help="pixels; default: 64, for ./whole_data 32")
    add("--amp_level", choices=["O1", "O2"], help="train in mixed precision")
    add("--amp_dtype", choices=["bfloat16", "float16"], help="default: float16, on a CPU bfloat16")
    add(
        "--to_static",
        action=argparse.BooleanOptionalAction,
        help="train the graph made by paddle.jit.to_static; default: for mixed precision on a CPU",
    )
    add("--pact_quant", action="store_true", help="train with PACT quantisation (needs tipcheck)")
    add("--test-only", action="store_true", help="evaluate --pretrained on the val split")
    add("--seed", type=at_least(0), default=7)
    args = parser.parse_args()

    check(args, parser)
    return args


def check(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse options that exclude each other; fill in what follows from others."""
    wrong = contradiction(args)
    if wrong:
        parser.error(wrong)
    has_gpu = paddle.is_compiled_with_cuda() and paddle.device.cuda.device_count() > 0
    if args.device == "auto":
        args.device = "gpu" if has_gpu else "cpu"
    if args.device == "gpu" and not has_gpu:
        parser.error("--device=gpu, but this PaddlePaddle sees no GPU (is it the CPU build?)")
    if args.amp_dtype == "float16" and args.device == "cpu":
        parser.error("--amp_dtype=float16 cannot train on a CPU: no such kernels; use bfloat16")
    if args.amp_level and args.amp_dtype is None:
        args.amp_dtype = "bfloat16" if args.device == "cpu" else "float16"
    if args.to_static is None:
        args.to_static = bool(args.amp_level) and args.device == "cpu"


def contradiction(args: argparse.Namespace) -> str:
    """Return what is wrong with the options whatever the machine is, or nothing."""
    if args.amp_dtype and not args.amp_level:
        return "--amp_dtype needs --amp_level"
    if args.amp_level and args.pact_quant:
        return "--pact_quant rounds float32 values: it cannot be combined with --amp_level"
    if args.test_only and args.pretrained is None:
        return "--test-only needs --pretrained"
    if args.resume and (args.pretrained or args.test_only):
        return "--resume cannot be combined with --pretrained or --test-only"
    return "" if 0 < args.lr < 10 else f"--lr={args.lr} is not between 0 and 10"


def fill_in(args: argparse.Namespace) -> None:
    """Complete what was not given; an evaluation takes it from the notes of the training."""
    notes = read_notes(args.pretrained) if args.test_only else None
    if args.data_path is None:
        args.data_path = Path(notes.data_path) if notes else LITE_DATA
    if args.img_size is None:
        args.img_size = notes.img_size if notes else usual_size(args.data_path)


def prepare(args: argparse.Namespace) -> Job:
    """Build or load the network and its optimizer."""
    paddle.set_device(args.device)
    ranks = dist.get_world_size()
    if ranks > 1:
        dist.init_parallel_env()
    paddle.seed(args.seed)
    classes = class_names(args.data_path)
    if args.pretrained is not None:
        net = load(args.model, args.pretrained, classes=len(classes))
    else:
        net = build(args.model, len(classes))
    optimizer = make_optimizer(net, args.lr)
    job = Job(args, dist.get_rank(), ranks, classes, net, optimizer)
    job.quantised = is_quantised(net.state_dict())
    if args.resume is not None:
        job.resume()
    return job


def float_epochs(args: argparse.Namespace) -> int:
    """Return how many epochs come before the quanters.

    PACT tunes a network that can do something already. One that starts from nothing is trained in
    float32 for the first half.
    """
    return args.epochs // 2 if args.pact_quant and args.pretrained is None else 0


def add_quanters(job: Job) -> None:
    """Quantise the network; its clipping values start where some images come near them.

    A clipping value above everything is never trained: nothing is clipped, no gradient reaches it.
    """
    args = job.args
    samples = Samples(args.data_path, "train", size=args.img_size)
    chosen = list(range(0, len(samples), max(1, len(samples) // CALIBRATED)))[:CALIBRATED]
    images, _ = samples.batch(chosen)
    job.quantise()
    count = calibrate(job.net, [images], "quantile", training=True)
    values = clips(job.net)
    job.say(
        f"[PACT] quantised {count} layers; clipping values from {min(values):.4f} to "
        f"{max(values):.4f}, mean {np.mean(values):.5f}"
    )


def make_trained(job: Job) -> Any:
    """Wrap the network for training: mixed precision, graph, data parallelism, as asked for."""
    args = job.args
    trained = job.net
    if args.amp_level:
        if args.amp_level == "O2" and args.device == "gpu":
            trained, job.optimizer = paddle.amp.decorate(
                trained, job.optimizer, level="O2", dtype=args.amp_dtype, save_dtype="float32"
            )
        if args.device == "cpu":
            keep_batch_norm_in_float32(trained)
        trained = MixedPrecision(trained, args.amp_level, args.amp_dtype)
    if args.to_static:
        shape = [None, 3, args.img_size, args.img_size]
        spec = [paddle.static.InputSpec(shape, "float32", "image")]
        trained = paddle.jit.to_static(trained, input_spec=spec, full_graph=True)
    return paddle.DataParallel(trained) if job.ranks > 1 else trained


def train(job: Job) -> None:
    """Train, evaluating and saving after every epoch."""
    args = job.args
    samples = Samples(args.data_path, "train", size=args.img_size, seed=args.seed)
    val = Samples(args.data_path, "val", size=args.img_size)
    sampler = paddle.io.DistributedBatchSampler(
        samples, args.batch_size, job.ranks, job.rank, shuffle=True
    )
    if older_set_aside:
        job.say("[AMP] FLAGS_enable_pir_api=0 is set aside: with it no op runs in low precision.")
    trained = None
    scaler = paddle.amp.GradScaler(enable=args.amp_dtype == "float16", init_loss_scaling=1024)
    job.say_on_all(f"pid {os.getpid()}")
    for epoch in range(job.first_epoch, args.epochs + 1):
        # Every epoch starts from a random state of its own: a resumed training repeats it exactly.
        paddle.seed(args.seed + 1000 * epoch + job.rank)
        sampler.set_epoch(epoch)
        samples.epoch = epoch
        job.optimizer.set_lr(args.lr * (1 + math.cos(math.pi * (epoch - 1) / args.epochs)) / 2)
        batches = [list(batch) for batch in sampler]
        if epoch == job.first_epoch:
            job.say_on_all(f"its samples: {list_samples(samples, batches)}")
        if args.pact_quant and not job.quantised and epoch > float_epochs(args):
            add_quanters(job)
            trained = None
        if trained is None:
            trained = make_trained(job)
        train_epoch(job, trained, scaler, samples, batches)
        average_statistics(job)
        if job.rank == 0:
            evaluate(job, val)
            job.save(epoch)
    if job.counted is not None:
        how = "a graph made by to_static" if args.to_static else "dygraph"
        job.say(f"[AMP] level {args.amp_level}, {args.amp_dtype}, {args.device}, {how}.")
        job.say("[AMP] What ran in the first training step, by Paddle's operator statistics:")
        for line in job.counted.lines():
            job.say(line)
    if job.quantised:
        values = clips(job.net)
        job.say(
            f"[PACT] learnt {len(values)} clipping values: from {min(values):.4f} to "
            f"{max(values):.4f}, mean {np.mean(values):.5f}"
        )
    job.say_on_all(f"parameter hash: {parameter_hash(job.net)}")


def train_epoch(
    job: Job, trained: Any, scaler: Any, samples: Samples, batches: list[list[int]]
) -> None:
    """Train one epoch, with a line per step.

    Raises:
        ProblemError: the loss is not finite any more.
    """
    args = job.args
    head = f"[Train][Epoch {samples.epoch}/{args.epochs}]"
    began = time.perf_counter()
    losses, right = [], 0
    trained.train()
    for number, batch in enumerate(batches, 1):
        started = time.perf_counter()
        image, label = samples.batch(batch)
        count_now = bool(args.amp_level) and job.counted is None
        with count_operators() if count_now else contextlib.nullcontext(job.counted) as job.counted:
            logits = trained(image)
            loss = paddle.nn.functional.cross_entropy(logits, label)
            if job.quantised:
                loss = loss + clip_penalty(job.net)
            scaler.scale(loss).backward()
            scaler.step(job.optimizer)
            scaler.update()
        job.optimizer.clear_grad()
        hits = int((logits.argmax(axis=1) == label).sum())
        losses.append(float(loss))
        right += hits
        cost = time.perf_counter() - started
        if len(batches) > LISTED and number % 10 and number != len(batches):
            continue
        job.say(
            f"{head}[Iter: {number}/{len(batches)}] lr: {job.optimizer.get_lr():.5f}, "
            f"loss: {losses[-1]:.8f}, "
            f"acc1: {hits / len(batch):.5f}, batch_cost: {cost:.5f} s, "
            f"ips: {len(batch) / cost:.3f} images/s"
        )
    if not all(np.isfinite(losses)):
        raise ProblemError(f"the loss is not finite in epoch {samples.epoch}: lower --lr")
    seen = sum(len(batch) for batch in batches)
    job.say(
        f"{head}[Avg] loss: {np.mean(losses):.5f}, acc1: {right / seen:.5f}, "
        f"ips: {seen / (time.perf_counter() - began):.3f} images/s"
    )


def list_samples(samples: Samples, batches: list[list[int]]) -> str:
    """Name the samples of an epoch in their order; of a large data set the first ones."""
    indices = [index for batch in batches for index in batch]
    names = " ".join(samples.name(index) for index in indices[:LISTED])
    left = len(indices) - LISTED
    return f"{names} and {left} more" if left > 0 else names


def average_statistics(job: Job) -> None:
    """Give all ranks the same running statistics; gradients alone do not keep them equal."""
    if job.ranks > 1:
        for tensor in job.net.state_dict().values():
            if tensor.stop_gradient:  # BatchNorm's mean and variance: parameters nobody trains
                dist.all_reduce(tensor)
                tensor.set_value(tensor / job.ranks)


def evaluate(job: Job, val: Samples) -> None:
    """Print loss and accuracy on the val split, in float32."""
    job.net.eval()
    right, total = 0, 0.0
    size = max(job.args.batch_size, EVAL_BATCH)
    with paddle.no_grad():
        for start in range(0, len(val), size):
            stop = min(start + size, len(val))
            image, label = val.batch(list(range(start, stop)))
            logits = job.net(image)
            total += float(paddle.nn.functional.cross_entropy(logits, label, reduction="sum"))
            right += int((logits.argmax(axis=1) == label).sum())
    job.say(
        f"[Eval] loss: {total / len(val):.5f}, acc1: {right / len(val):.5f}, images: {len(val)}"
    )


def main() -> None:
    """Train or evaluate."""
    args = read_arguments()
    if not args.test_only and args.output_dir.exists() and not args.output_dir.is_dir():
        raise ProblemError(f"--output-dir {args.output_dir} is a file")
    fill_in(args)
    job = prepare(args)
    if args.test_only:
        evaluate(job, Samples(args.data_path, "val", size=args.img_size))
        return
    try:
        train(job)
    except KeyboardInterrupt:
        sys.exit(f"train.py: {job.how_to_go_on()}")


if __name__ == "__main__":
    run(main)
