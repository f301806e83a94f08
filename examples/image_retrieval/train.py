"""Train MyNet on pairs of images: op by op, or as the graph that ``to_static`` makes.

python train.py --output-dir=output/dygraph
python train.py --to_static --output-dir=output/to_static
"""

from __future__ import annotations

import argparse
from pathlib import Path

import paddle
from retrieval import data, training
from retrieval.problems import ProblemError, count, output_folder, positive, run, seed


def main() -> None:
    """Train."""
    usual = training.Recipe()
    parser = argparse.ArgumentParser(description="Train MyNet on pairs of images of one class.")
    add = parser.add_argument
    add("--data-path", type=Path, default=Path("data"), help="what prepare_data.py made")
    add("--output-dir", type=Path, default=Path("output/dygraph"), help="where the weights go")
    add("--to_static", action="store_true", help="train the graph of paddle.jit.to_static")
    add("--epochs", type=count, default=usual.epochs)
    add("--batches", type=count, default=usual.batches, help="batches of an epoch")
    add("--lr", type=positive, default=usual.lr, help="learning rate of Adam")
    add("--temperature", type=positive, default=usual.temperature)
    add("--seed", type=seed, default=usual.seed, help="of the weights and the pairs")
    add("--print-every", type=count, default=500, metavar="BATCHES")
    add("--resume", type=Path, help="go on with an interrupted training: its output folder")
    args = parser.parse_args()

    folder = output_folder(args.output_dir)
    paddle.set_device("cpu")
    recipe = training.Recipe(args.epochs, args.batches, args.lr, args.temperature, args.seed)
    images = data.load(args.data_path)
    if args.resume is None:
        # What an earlier training left here is not of this one.
        for left_over in (training.STATE, training.WEIGHTS, training.LOSSES):
            (folder / left_over).unlink(missing_ok=True)
        progress = training.start(recipe, to_static=args.to_static)
    else:
        progress = training.resume(args.resume, recipe, images, to_static=args.to_static)
        done = len(progress.losses) // recipe.batches
        print(f"resumed from {args.resume}: {done} epochs of {recipe.epochs} are done", flush=True)
        if done > recipe.epochs:
            raise ProblemError(
                f"{args.resume} has {done} epochs already, more than --epochs={recipe.epochs}"
            )
    how = "the graph of to_static" if args.to_static else "dygraph"
    print(f"{how}, {images.origin}, seed {recipe.seed}", flush=True)
    training.train(progress, images, recipe, folder, every=args.print_every)
    training.write(progress, images, recipe, folder)
    print(f"saved {folder / training.WEIGHTS}")


if __name__ == "__main__":
    run(main)
