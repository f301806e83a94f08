"""What a training notes beside its weights, so that evaluation and export need not be told again.

The chain's commands for both name the weights and nothing else: neither the data set, nor the size
of its images, nor whether the training was quantised.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from mobilenet.problems import ProblemError


@dataclass(frozen=True)
class Notes:
    """What a training was given.

    Attributes:
        model: name of the network.
        data_path: folder of the data set.
        img_size: side of the images in pixels.
        labels: names of the classes.
    """

    model: str
    data_path: str
    img_size: int
    labels: list[str]


def write_notes(notes: Notes, weights: Path) -> None:
    """Write the notes: a file beside the weights, with their name and the suffix .json."""
    weights.with_suffix(".json").write_text(json.dumps(asdict(notes), indent=1) + "\n")


def read_notes(weights: Path) -> Notes | None:
    """Read what was noted beside some weights, or None where nothing was.

    Raises:
        ProblemError: the file is damaged.
    """
    path = weights.with_suffix(".json")
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text())
        return Notes(
            str(found["model"]),
            str(found["data_path"]),
            int(found["img_size"]),
            [str(label) for label in found["labels"]],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ProblemError(f"{path} is damaged ({error}): delete it, or train again") from None
