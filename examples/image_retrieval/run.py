"""Everything: data, two trainings, export, search, pictures, and a report of what agrees.

python run.py          the full recipe, on CIFAR-10
python run.py --lite   in less than a minute, on generated images, without network
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

# Paddle's own notes would stand between the lines of the report.
os.environ.setdefault("GLOG_minloglevel", "2")

import paddle
from retrieval import data, model, neighbours, pictures, report, stages, training
from retrieval.problems import ProblemError, count, output_folder, run, seed

HERE = Path(__file__).resolve().parent
TRAININGS = {"dygraph": [], "to_static": ["--to_static"]}
LITE = {"epochs": 2, "batches": 150, "print_every": 50}
FULL = {"epochs": 10, "batches": 1000, "print_every": 500}


def main() -> None:
    """Do it all; what does not agree ends with status 1."""
    parser = argparse.ArgumentParser(description="Train, export, search, and compare the ways.")
    add = parser.add_argument
    add("--lite", action="store_true", help="a short training on generated images")
    add("--data-path", type=Path, help="default: data, with --lite lite_data")
    add("--output-dir", type=Path, help="default: output, with --lite output/lite")
    add("--epochs", type=count, help=f"default: {FULL['epochs']}, with --lite {LITE['epochs']}")
    add("--batches", type=count, help=f"default: {FULL['batches']}, with --lite {LITE['batches']}")
    add("--seed", type=seed, default=0)
    add("--resume", action="store_true", help="go on with an interrupted call")
    args = parser.parse_args()
    usual = LITE if args.lite else FULL
    recipe = training.Recipe(
        epochs=args.epochs or usual["epochs"],
        batches=args.batches or usual["batches"],
        seed=args.seed,
    )
    folder = output_folder(args.output_dir or Path("output/lite" if args.lite else "output"))
    source = args.data_path or Path("lite_data" if args.lite else "data")

    paddle.set_device("cpu")
    if args.data_path is None:
        wanted = ["--generated"] if args.lite else []
        call("prepare_data.py", [f"--data-path={source}", *wanted])
    images = data.load(source)
    pictures.samples(images.train_images, seed=args.seed).save(folder / "samples.png")
    train_both(recipe, source, folder, every=usual["print_every"], resume=args.resume)
    results = judge(recipe, images, folder)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    text = report.markdown(results)
    (folder / "report.md").write_text(text, encoding="utf-8")
    print(f"\n{text}\nwrote {folder}/report.md, results.json and the pictures beside them")
    if results["problems"]:
        raise ProblemError("; ".join(results["problems"]))


def call(script: str, words: list[str]) -> None:
    """Run another script of this folder; its own line says what went wrong.

    Raises:
        ProblemError: it failed.
    """
    done = subprocess.run([sys.executable, HERE / script, *words], check=False)
    if done.returncode:
        raise ProblemError(f"{script} ended with status {done.returncode}, see above")


def train_both(
    recipe: training.Recipe, source: Path, folder: Path, *, every: int, resume: bool
) -> None:
    """Train both ways at once: each uses one core.

    Raises:
        ProblemError: one of them failed.
    """
    processes, threads = {}, []
    for name, words in TRAININGS.items():
        own = folder / name
        argv = [
            f"--data-path={source}", f"--output-dir={own}", f"--epochs={recipe.epochs}",
            f"--batches={recipe.batches}", f"--seed={recipe.seed}", f"--print-every={every}",
            *words,
        ]  # fmt: skip
        if resume and (own / model.STATE).is_file():
            argv.append(f"--resume={own}")
        process = subprocess.Popen(
            [sys.executable, HERE / "train.py", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
        processes[name] = process
        for stream, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            thread = threading.Thread(target=pass_on, args=(name, stream, target), daemon=True)
            thread.start()
            threads.append(thread)
    try:
        for process in processes.values():
            process.wait()
    finally:
        for process in processes.values():
            process.terminate()
    for thread in threads:
        thread.join()
    failed = [name for name, process in processes.items() if process.returncode]
    if failed:
        raise ProblemError(f"the training {failed[0]} failed, see above")


def pass_on(name: str, stream: IO[str], target: IO[str]) -> None:
    """Print what a training prints, with its name in front."""
    for line in stream:
        print(f"[{name}] {line.rstrip()}", file=target, flush=True)


def judge(recipe: training.Recipe, images: data.Data, folder: Path) -> dict[str, Any]:
    """Compare the trainings, export, compare the stages, search, and draw."""
    problems = []
    losses = {name: training.read_losses(folder / name) for name in TRAININGS}
    agreement = report.agree(losses["dygraph"], losses["to_static"])
    if not agreement.holds:
        problems.append(agreement.describe(recipe.batches))
    pictures.curves(losses, folder / "losses.png")

    trained = {name: model.load(folder / name, to_static=name == "to_static") for name in TRAININGS}
    print()
    model.summary(trained["to_static"])
    program = stages.export(trained["to_static"], folder / "exported")
    print(f"exported {program}")
    untrained = model.build(to_static=False, seed=recipe.seed)
    untrained.eval()

    # The weights of the training under to_static, in every way of running them.
    answers = {
        "eager": stages.of_layer(model.load(folder / "to_static")),
        "to_static": stages.of_layer(trained["to_static"]),
        "jit.load": stages.loaded(program),
    }
    for name, (passes, onednn) in stages.INFERENCE.items():
        answers[name] = stages.in_inference(program, passes=passes, onednn=onednn)
    embedded = {name: stages.embed(answer, images.test_images) for name, answer in answers.items()}
    eager = embedded["eager"]
    apart = {name: report.furthest(eager, given) for name, given in embedded.items()}
    problems += [
        f"the embeddings of {name} are {distance:.3g} from those of the eager network, "
        f"more than {report.EMBEDDING_TOLERANCE:g}"
        for name, distance in apart.items()
        if not distance <= report.EMBEDDING_TOLERANCE
    ]

    vectors = {
        "untrained": stages.embed(stages.of_layer(untrained), images.test_images),
        "trained in dygraph": stages.embed(stages.of_layer(trained["dygraph"]), images.test_images),
        "trained under to_static, exported, loaded": embedded["jit.load"],
    }
    found = {name: neighbours.nearest(given, 10) for name, given in vectors.items()}
    _, dygraph, loaded = found
    for name, picture in ((dygraph, "neighbours_dygraph"), (loaded, "neighbours_loaded")):
        pictures.neighbours(
            images.test_images, images.test_labels, found[name], seed=recipe.seed
        ).save(folder / f"{picture}.png")
    same = int((found[dygraph] == found[loaded]).all(axis=1).sum())
    return {
        "data": images.origin,
        "recipe": asdict(recipe),
        "test_images": len(images.test_images),
        "chance": neighbours.chance(images.test_labels),
        "retrieval": {
            name: {
                f"precision@{n}": neighbours.precision(indices, images.test_labels, n)
                for n in (1, 10)
            }
            for name, indices in found.items()
        },
        "same_neighbours": (
            f"{same:,} of {len(eager):,} queries have the same ten neighbours, in the same order, "
            "in dygraph and after export and loading."
        ),
        "losses": agreement.describe(recipe.batches),
        "agreement": asdict(agreement),
        "losses_by_epoch": report.by_epoch(losses, recipe.batches),
        "embeddings": apart,
        "problems": problems,
    }


if __name__ == "__main__":
    run(main)
