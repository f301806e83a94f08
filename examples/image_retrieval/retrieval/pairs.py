"""The pair reader: batches of one anchor and one positive image of every class."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from retrieval.data import CLASSES, SIDE, Data, scale
from retrieval.problems import ProblemError

Batch = npt.NDArray[np.float32]


def pairs(data: Data, batches: int, *, seed: int, epoch: int) -> Iterator[Batch]:
    """Yield batches of shape [2, 10, 3, 32, 32]: anchors, and another image of each one's class.

    What is drawn depends on the seed and the epoch only, so that two trainings see the same images,
    and a resumed one sees what it would have seen.

    Raises:
        ProblemError: a class has fewer than two images.
    """
    by_class = [data.of_class(kind) for kind in range(CLASSES)]
    for kind, members in enumerate(by_class):
        if len(members) < 2:
            raise ProblemError(f"class {kind} has {len(members)} training images; a pair needs 2")
    draw = random.Random(f"{seed}/{epoch}")  # noqa: S311 (nothing secret)
    for _ in range(batches):
        anchors, positives = [], []
        for members in by_class:
            anchor = draw.choice(members)
            positive = draw.choice(members)
            while positive == anchor:
                positive = draw.choice(members)
            anchors.append(anchor)
            positives.append(positive)
        yield scale(data.train_images[anchors + positives]).reshape(2, CLASSES, 3, SIDE, SIDE)
