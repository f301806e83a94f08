"""What a run found: whether trainings and stages agree, how good the search is; and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
LOSS_TOLERANCE = 1e-5
EMBEDDING_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Agreement:
    """How far the losses of two trainings agree, step by step."""

    steps: int
    equal: int
    largest: float
    first_beyond: int | None

    @property
    def holds(self) -> bool:
        """Whether every step is within the tolerance."""
        return self.first_beyond is None

    def describe(self, batches: int) -> str:
        """Say it in a line."""
        if self.first_beyond is None:
            return (
                f"all {self.steps:,} losses agree within {LOSS_TOLERANCE:g}; {self.equal:,} are "
                f"equal bit for bit, the largest difference is {self.largest:.3g}"
            )
        epoch, batch = divmod(self.first_beyond, batches)
        return (
            f"the losses differ by more than {LOSS_TOLERANCE:g} from step {self.first_beyond:,} on "
            f"(epoch {epoch}, batch {batch}); the largest difference is {self.largest:.3g}"
        )


def agree(one: Sequence[float], other: Sequence[float]) -> Agreement:
    """Compare the losses of two trainings.

    A training that is shorter than the other disagrees from its end on.
    """
    steps = min(len(one), len(other))
    apart = np.abs(np.array(one[:steps]) - np.array(other[:steps]))
    beyond = np.flatnonzero(~(apart <= LOSS_TOLERANCE))
    first = int(beyond[0]) if len(beyond) else None
    if first is None and (len(one) != len(other) or not steps):
        first = steps
    largest = float(apart.max()) if steps else float("nan")
    return Agreement(steps, int((apart == 0).sum()), largest, first)


def by_epoch(losses: Mapping[str, Sequence[float]], batches: int) -> list[dict[str, Any]]:
    """Return the mean loss of every epoch of each training, and how far their steps are apart."""
    rows = []
    names = list(losses)
    epochs = min(len(values) for values in losses.values()) // batches
    for epoch in range(epochs):
        parts = {name: np.array(losses[name][epoch * batches :][:batches]) for name in names}
        apart = np.ptp(np.stack([*parts.values()]), axis=0).max()
        means = {name: float(values.mean()) for name, values in parts.items()}
        rows.append({"epoch": epoch, "mean_loss": means, "largest_difference": float(apart)})
    return rows


def furthest(reference: Floats, other: Floats) -> float:
    """Return the largest difference; something missing or not finite is infinitely far."""
    if reference.shape != other.shape or not np.isfinite(other).all():
        return float("inf")
    return float(np.abs(reference - other).max())


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay a table out as Markdown, numbers to the right."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def markdown(results: Mapping[str, Any]) -> str:
    """Return the report of a run."""
    trainings = list(results["losses_by_epoch"][0]["mean_loss"])
    losses = table(
        ["epoch", *(f"{name}, mean loss" for name in trainings), "largest difference of a step"],
        [
            [
                str(row["epoch"]),
                *(f"{row['mean_loss'][name]:.6f}" for name in trainings),
                f"{row['largest_difference']:.3g}",
            ]
            for row in results["losses_by_epoch"]
        ],
    )
    search = table(
        ["network", "precision@1", "precision@10"],
        [
            *(
                [name, f"{found['precision@1']:.4f}", f"{found['precision@10']:.4f}"]
                for name, found in results["retrieval"].items()
            ),
            ["chance", f"{results['chance']:.4f}", f"{results['chance']:.4f}"],
        ],
    )
    stages = table(
        ["stage", "largest difference from eager"],
        [[name, f"{apart:.3g}"] for name, apart in results["embeddings"].items()],
    )
    return (
        f"# Image retrieval: {results['data']}, seed {results['recipe']['seed']}\n\n"
        f"{results['test_images']:,} queries, each against all the others.\n\n{search}\n\n"
        f"{results['same_neighbours']}\n\n"
        f"## Losses\n\n{results['losses']}\n\n![losses](losses.png)\n\n{losses}\n\n"
        f"## Embeddings of the same weights\n\n{stages}\n"
    )
