"""The nearest neighbours among all images, in memory that does not grow with their square.

Sorting the whole similarity matrix of 10,000 images, as the notebook does, asks for the matrix
(400 MB) and the sorted indices (another 800 MB) at once. Here a few hundred rows of the matrix
exist at a time, and of each only the best are kept.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]


def nearest(embeddings: Floats, count: int, *, block: int = 256) -> Indices:
    """Return, for every row, which other rows are most similar to it, the most similar first.

    A row is never its own neighbour. Equal similarities stand in the order of their index.

    Raises:
        ValueError: there are not that many other rows, or an embedding is not finite.
    """
    total = len(embeddings)
    if not 0 < count < total:
        raise ValueError(f"{count} neighbours of {total} embeddings cannot be found")
    if not np.isfinite(embeddings).all():
        raise ValueError("an embedding is not a finite number")
    found = np.empty((total, count), np.int64)
    for begin in range(0, total, block):
        end = min(begin + block, total)
        similar = embeddings[begin:end] @ embeddings.T
        rows = np.arange(end - begin)
        similar[rows, begin + rows] = -np.inf  # itself
        found[begin:end] = _largest(similar, count)
    return found


def _largest(values: Floats, count: int) -> Indices:
    """Return the columns of the largest values of each row, in falling order."""
    columns = np.argpartition(-values, count - 1, axis=1)[:, :count].astype(np.int64)
    columns.sort(axis=1)  # so that a stable sort by value leaves ties in the order of their index
    kept = np.take_along_axis(values, columns, axis=1)
    order = np.argsort(-kept, axis=1, kind="stable")
    columns = np.take_along_axis(columns, order, axis=1)
    # Where more columns tie for the last place than there is room for, the first of them count.
    last = kept.min(axis=1, keepdims=True)
    for row in np.flatnonzero((values >= last).sum(axis=1) > count):
        ties = np.flatnonzero(values[row] >= last[row])
        columns[row] = ties[np.argsort(-values[row, ties], kind="stable")[:count]]
    return columns


def precision(neighbours: Indices, labels: npt.NDArray[np.uint8], count: int) -> float:
    """Return the share of the first ``count`` neighbours that are of their query's class."""
    return float((labels[neighbours[:, :count]] == labels[:, None]).mean())


def chance(labels: npt.NDArray[np.uint8]) -> float:
    """Return the precision of neighbours that are drawn at random, the query itself left out."""
    sizes = np.bincount(labels)
    return float((sizes * (sizes - 1)).sum() / (len(labels) * (len(labels) - 1)))
