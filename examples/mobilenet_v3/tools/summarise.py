"""Show what the chains have done: loss curves, a collage of answers, a table.

    python tools/summarise.py

Reads the logs and models that `tipcheck run` left below test_tipc/output, classifies the images of
./lite_data with each exported model, and writes summary/curves.png, collage.png, summary.md.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))

from mobilenet.images import SUFFIXES, read_image
from mobilenet.problems import ProblemError, run

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b")
GOOD, BAD, INK, GREY = "#1a7f37", "#b3261e", "#202124", "#9aa0a6"
EPOCH = re.compile(r"\[Train\]\[Epoch \d+/\d+\]\[Avg\] loss: ([\d.]+)")
ANSWER = re.compile(r"^image: (.+), class_id: \d+, prob: ([\d.]+), label: (\S+)$", re.MULTILINE)
LAST = {
    "[AMP] ops in low precision": "AMP: ",
    "[PACT] learnt": "PACT: ",
    "[Eval]": "last evaluation: ",
}


@dataclass
class Chain:
    """One training and what came out of it.

    Attributes:
        name: its trainer.
        folder: where weights and exported model are.
        losses: the mean of every epoch.
        said: the lines of the log that say what was special.
        answers: by the image's path: class and probability.
    """

    name: str
    folder: Path
    losses: list[float]
    said: list[str]
    answers: dict[str, tuple[str, float]] = field(default_factory=dict)


def main() -> None:
    """Write curves, collage and table."""
    parser = argparse.ArgumentParser(description="Show what the chains have done.")
    add = parser.add_argument
    add("--output", type=Path, default=Path("./summary"), help="where the pictures go")
    add("--logs", type=Path, default=Path("./test_tipc/output"), help="where the logs are")
    add("--mode", default="lite_train_lite_infer", help="the mode that was run")
    add("--data-path", type=Path, default=Path("./lite_data"))
    args = parser.parse_args()
    chains = find_chains(args.logs, args.mode)
    images = [
        path
        for split in ("train", "val")
        for path in sorted((args.data_path / split).glob("*/*"))
        if path.suffix.lower() in SUFFIXES
    ]
    if not images:
        raise ProblemError(f"{args.data_path} holds no image: tools/prepare_data.py makes it")
    args.output.mkdir(parents=True, exist_ok=True)
    classify(chains, images, args.output / "images")
    draw_curves(chains).save(args.output / "curves.png")
    draw_collage(chains, images).save(args.output / "collage.png")
    text = "\n".join(table(chains, images))
    (args.output / "summary.md").write_text(f"{text}\n\n![](curves.png)\n\n![](collage.png)\n")
    print(text)
    print(f"\npictures: {args.output / 'curves.png'}, {args.output / 'collage.png'}")


def find_chains(logs: Path, mode: str) -> list[Chain]:
    """Return the trainings whose logs and exported models are there.

    Raises:
        ProblemError: there is none.
    """
    chains = []
    for log in sorted(logs.glob(f"*/{mode}/*_train.log")):
        name = log.name.removesuffix("_train.log")
        folder = log.with_name(f"{name}.log")
        text = log.read_text(errors="replace")
        losses = [float(loss) for loss in EPOCH.findall(text)]
        if not losses or not (folder / "inference_config.json").is_file():
            continue
        said = [
            told + line.partition("]")[2].strip().removeprefix("learnt ")
            for head, told in LAST.items()
            for line in [one for one in text.splitlines() if one.startswith(head)][-1:]
        ]
        chains.append(
            Chain(f"{log.parent.parent.name} {name.split('_gpus')[0]}", folder, losses, said)
        )
    if not chains:
        raise ProblemError(
            f"no finished chain of {mode} in {logs}: bash "
            f"test_tipc/test_train_inference_python.sh CONFIG {mode} makes one"
        )
    return chains


def classify(chains: Sequence[Chain], images: Sequence[Path], folder: Path) -> None:
    """Let the exported model of every chain classify all images.

    Raises:
        ProblemError: an inference failed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = {}
    for number, path in enumerate(images):
        copied = folder / f"{number:03}{path.suffix}"
        shutil.copyfile(path, copied)
        names[str(copied)] = str(path)
    for chain in chains:
        script = HERE / "deploy/inference_python/infer.py"
        words = [f"--model-dir={chain.folder}", f"--img-path={folder}", "--batch-size=10"]
        done = subprocess.run(
            [sys.executable, str(script), *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
            raise ProblemError(f"the model of {chain.name} cannot classify: {said}")
        for name, probability, label in ANSWER.findall(done.stdout):
            chain.answers[names[name]] = (label, float(probability))


def table(chains: Sequence[Chain], images: Sequence[Path]) -> list[str]:
    """Return the table: a line per chain."""
    lines = ["| | chain | loss: first epoch, last epoch | images classified right |"]
    lines.append("|---|---|---|---|")
    for number, chain in enumerate(chains, 1):
        right = sum(
            chain.answers.get(str(path), ("", 0.0))[0] == path.parent.name for path in images
        )
        told = f"{chain.losses[0]:.4f}, {chain.losses[-1]:.4f}"
        lines.append(f"| {number} | {chain.name} | {told} | {right} of {len(images)} |")
    lines += ["", *(f"- {chain.name}: {said}" for chain in chains for said in chain.said)]
    return lines


def draw_curves(chains: Sequence[Chain], width: int = 900, height: int = 420) -> Image.Image:
    """Draw the mean loss of every epoch of every training."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(15)
    left, top, right, bottom = 60, 40, width - 20, height - 50
    highest = max(max(chain.losses) for chain in chains) * 1.05
    steps = max(len(chain.losses) for chain in chains)
    draw.text((left, 10), "mean training loss of each epoch", INK, font)
    for part in range(6):
        y = bottom - (bottom - top) * part / 5
        draw.line((left, y, right, y), "#e8eaed")
        draw.text((10, y - 9), f"{highest * part / 5:.2f}", INK, font)
    for epoch in sorted({1 + round((steps - 1) * part / 5) for part in range(6)}):
        x = left + (right - left) * (epoch - 1) / max(steps - 1, 1)
        draw.text((x, bottom + 8), f"{epoch}", INK, font, anchor="mt")
    draw.text(((left + right) / 2, height - 6), "epoch", INK, font, anchor="mb")
    for number, chain in enumerate(chains):
        colour = COLOURS[number % len(COLOURS)]
        points = [
            (
                left + (right - left) * step / max(steps - 1, 1),
                bottom - (bottom - top) * loss / highest,
            )
            for step, loss in enumerate(chain.losses)
        ]
        draw.line(points, colour, 2)
        draw.text((right - 330, top + 4 + 20 * number), chain.name, colour, font)
    return image


def draw_collage(chains: Sequence[Chain], images: Sequence[Path], side: int = 150) -> Image.Image:
    """Draw every image with the answer of every chain below it, green where it is right."""
    columns = 5
    high = side + 24 + 18 * len(chains)
    rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (columns * (side + 16) + 16, rows * (high + 12) + 12), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(12)
    for number, path in enumerate(images):
        x, y = 16 + number % columns * (side + 16), 12 + number // columns * (high + 12)
        sheet.paste(read_image(path).resize((side, side)), (x, y))
        kind = path.parent.name
        draw.text((x, y + side + 4), f"{path.parent.parent.name}: {kind}"[:26], INK, font)
        for line, chain in enumerate(chains):
            label, probability = chain.answers.get(str(path), ("-", 0.0))
            colour = GOOD if label == kind else BAD
            draw.rectangle((x, y + side + 26 + 18 * line, x + 8, y + side + 34 + 18 * line), colour)
            told = f"{label[:15]} {probability:.0%}"
            draw.text((x + 13, y + side + 22 + 18 * line), told, colour, font)
            draw.text((x + side - 10, y + side + 22 + 18 * line), str(line + 1), GREY, font)
    return sheet


if __name__ == "__main__":
    run(main)
