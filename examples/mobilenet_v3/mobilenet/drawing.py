"""Generated images: stripes, checks, rings and noise, for where no real data can be had."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

KINDS = ("stripes", "checks", "rings", "noise")


def draw(kind: int, size: int, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return a square pattern of one of the four kinds, from -1 to 1."""
    rows, columns = np.mgrid[0:size, 0:size] / size
    waves = random.uniform(4, 9)
    if kind == 0:
        return np.asarray(np.sin(2 * np.pi * waves * rows))
    if kind == 1:
        product = np.sin(np.pi * waves * rows) * np.sin(np.pi * waves * columns)
        return np.asarray(np.sign(product))
    if kind == 2:
        return np.asarray(np.sin(2 * np.pi * waves * np.hypot(rows - 0.5, columns - 0.5)))
    return random.uniform(-1, 1, rows.shape)
