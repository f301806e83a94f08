"""The pictures: collages of images, and the curves of losses."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from retrieval.data import CLASSES, SIDE, Bytes

_BOX = SIDE + 2
_COLOURS = ("#1f6f5c", "#d1603d", "#3b5b92", "#8a6d1d")
_INK, _GRID = "#333333", "#dddddd"
_GOOD, _BAD = "#1a7f37", "#b3261e"


def collage(images: Bytes) -> Image.Image:
    """Lay images out, [rows, columns, 3, 32, 32], on white, at twice their size."""
    rows, columns = images.shape[:2]
    picture = Image.new("RGB", (columns * _BOX, rows * _BOX), (255, 255, 255))
    for row in range(rows):
        for column in range(columns):
            tile = Image.fromarray(np.ascontiguousarray(images[row, column].transpose(1, 2, 0)))
            picture.paste(tile, (column * _BOX, row * _BOX))
    return picture.resize((2 * columns * _BOX, 2 * rows * _BOX))


def samples(images: Bytes, *, seed: int) -> Image.Image:
    """Show 25 images, drawn at random."""
    drawn = np.random.default_rng(seed).integers(0, len(images), (5, 5))
    return collage(images[drawn])


def neighbours(
    images: Bytes, labels: Bytes, found: npt.NDArray[np.int64], *, seed: int
) -> Image.Image:
    """Show a random image of every class, and to its right what was found for it.

    What is of the same class is underlined in green, what is not in red.
    """
    draw = random.Random(seed)  # noqa: S311 (nothing secret)
    queries = [draw.choice(np.flatnonzero(labels == kind).tolist()) for kind in range(CLASSES)]
    picture = collage(images[[[query, *found[query]] for query in queries]])
    pen = ImageDraw.Draw(picture)
    for row, query in enumerate(queries):
        for column, neighbour in enumerate(found[query], 1):
            x, y = 2 * column * _BOX, 2 * (row * _BOX + SIDE)
            colour = _GOOD if labels[neighbour] == labels[query] else _BAD
            pen.rectangle((x, y, x + 2 * SIDE - 1, y + 2), fill=colour)
    return picture


def curves(losses: Mapping[str, Sequence[float]], path: Path, *, width: int = 100) -> None:
    """Draw the losses of trainings: each step faintly, their running mean over it.

    Curves that agree lie on each other; each is a little thinner than the one below it.
    """
    size, left, top, right, bottom = (960, 420), 60, 20, 40, 50
    picture = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(14)
    longest = max(len(values) for values in losses.values())
    lowest = min(min(values) for values in losses.values())
    highest = max(max(values) for values in losses.values())
    room = max(highest - lowest, 1e-6)

    def place(step: float, loss: float) -> tuple[float, float]:
        across = step / max(longest - 1, 1) * (size[0] - left - right)
        return left + across, size[1] - bottom - (loss - lowest) / room * (size[1] - top - bottom)

    for share in np.linspace(0, 1, 6):
        x, _ = place(share * (longest - 1), lowest)
        _, y = place(0, lowest + share * room)
        draw.line([(left, y), (size[0] - right, y)], fill=_GRID)
        draw.text((left - 8, y), f"{lowest + share * room:.2f}", _INK, font, anchor="rm")
        draw.text((x, size[1] - bottom + 8), f"{share * longest:,.0f}", _INK, font, anchor="mt")
    draw.text((size[0] / 2, size[1] - 8), "training step", _INK, font, anchor="mb")
    first = next(iter(losses.values()))
    draw.point([place(step, loss) for step, loss in enumerate(first)], fill="#8fb0a6")
    for number, (name, values) in enumerate(losses.items()):
        window = min(width, len(values))
        mean = np.convolve(values, np.ones(window) / window, "valid")
        points = [place(step + window / 2, loss) for step, loss in enumerate(mean)]
        colour, thickness = _COLOURS[number % len(_COLOURS)], max(7 - 4 * number, 2)
        draw.line(points if len(points) > 1 else points * 2, fill=colour, width=thickness)
        x, y = size[0] - right - 330, top + 8 + 22 * number
        draw.line([(x, y), (x + 30, y)], fill=colour, width=thickness)
        label = f"{name} (mean of {window} steps)"
        draw.text((x + 40, y), label, _INK, font, anchor="lm")
    picture.save(path)
