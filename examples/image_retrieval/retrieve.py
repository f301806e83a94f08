"""Find the ten nearest neighbours of every test image, with any form of the network.

python retrieve.py --model=output/dygraph
python retrieve.py --model=output/exported --engine=inference --picture=neighbours.png
"""

from __future__ import annotations

import argparse
import tracemalloc
from pathlib import Path

import paddle
from retrieval import data, model, neighbours, pictures, stages
from retrieval.problems import ProblemError, count, run, seed


def main() -> None:
    """Embed, search, judge, draw."""
    parser = argparse.ArgumentParser(description="Find similar images, and say how many are.")
    add = parser.add_argument
    add("--model", type=Path, default=Path("output/exported"), help="of train.py or export.py")
    add(
        "--engine",
        choices=["auto", "dygraph", "to_static", "load", "inference"],
        default="auto",
        help="how to run it; auto: dygraph for weights, load for an export",
    )
    add("--data-path", type=Path, default=Path("data"), help="what prepare_data.py made")
    add("--neighbours", type=count, default=10, metavar="N")
    add("--picture", type=Path, help="a PNG of ten queries and what was found for them")
    add("--seed", type=seed, default=0, help="which queries the picture shows")
    args = parser.parse_args()

    paddle.set_device("cpu")
    if args.picture is not None and not args.picture.parent.is_dir():
        raise ProblemError(f"--picture: the folder {args.picture.parent} does not exist")
    images = data.load(args.data_path)
    if args.neighbours >= len(images.test_images):
        parser.error(f"--neighbours={args.neighbours} of {len(images.test_images)} test images")
    answer, how = choose(args.model, args.engine)
    embeddings = stages.embed(answer, images.test_images)
    tracemalloc.start()
    found = neighbours.nearest(embeddings, args.neighbours)
    memory = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    for number in sorted({1, args.neighbours}):
        share = neighbours.precision(found, images.test_labels, number)
        print(f"precision@{number}: {share:.4f} ({how}, {len(found):,} queries, {images.origin})")
    print(f"by chance: {neighbours.chance(images.test_labels):.4f}")
    print(f"the search took {memory:.0f} MB")
    if args.picture is not None:
        drawn = pictures.neighbours(images.test_images, images.test_labels, found, seed=args.seed)
        drawn.save(args.picture, format="PNG")
        print(f"wrote {args.picture}")


def choose(path: Path, engine: str) -> tuple[stages.Answer, str]:
    """Return the network to ask, and what it is.

    Raises:
        ProblemError: there is none, or none that the engine can run.
    """
    if not path.exists():
        raise ProblemError(f"--model {path} does not exist")
    weights = path.is_file() or (path / model.WEIGHTS).is_file()
    if engine == "auto":
        engine = "dygraph" if weights else "load"
    if engine in ("dygraph", "to_static"):
        net = model.load(path, to_static=engine == "to_static")
        return stages.of_layer(net), engine
    program = stages.find_export(path)
    if engine == "load":
        return stages.loaded(program), "jit.load"
    return stages.in_inference(program, passes=True, onednn=False), "Paddle Inference"


if __name__ == "__main__":
    run(main)
