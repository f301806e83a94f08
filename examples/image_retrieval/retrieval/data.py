"""The prepared data set: four arrays of bytes in one file, checked whenever they are read."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from retrieval.problems import ProblemError

Bytes = npt.NDArray[np.uint8]
CLASSES = 10
SIDE = 32
ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
CIFAR10 = "CIFAR-10"
GENERATED = "generated images, not CIFAR-10"
# What `fingerprint` gives for the arrays that both archives hold.
CIFAR10_SHA256 = "6392304970822e5eb091ea3304c856fa5e37de3ffd53d1a2185ecd15d04a2722"
# What the seed's `image / 255.` gives, for all 256 values: divided in float64, kept in float32.
_SCALED = (np.arange(256) / 255.0).astype(np.float32)


@dataclass(frozen=True)
class Data:
    """Images as bytes, [N, 3, 32, 32], with their labels; and where they come from."""

    origin: str
    train_images: Bytes
    train_labels: Bytes
    test_images: Bytes
    test_labels: Bytes

    def of_class(self, kind: int) -> list[int]:
        """Return which training images are of a class."""
        found: list[int] = np.flatnonzero(self.train_labels == kind).tolist()
        return found


def scale(images: Bytes) -> npt.NDArray[np.float32]:
    """Turn bytes into the network's input, 0 to 1.

    The whole training set in float64, as in the usual notebook, takes 1.2 GB; as bytes it takes an
    eighth of that, and only what is used is turned into floats.
    """
    return _SCALED[images]


def fingerprint(arrays: dict[str, Bytes]) -> str:
    """Return a hash of all four arrays."""
    digest = hashlib.sha256()
    for name in ARRAYS:
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.shape} {array.dtype}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()


def check_cifar10(arrays: dict[str, Bytes], path: Path) -> None:
    """Refuse what does not have the counts of CIFAR-10.

    Raises:
        ProblemError: there are too few or too many images, all in all or of one class.
    """
    for split, number in (("train", 50_000), ("test", 10_000)):
        images, labels = arrays[f"{split}_images"], arrays[f"{split}_labels"]
        if not len(images) == len(labels) == number:
            raise ProblemError(
                f"{path} holds {len(images):,} {split} images with {len(labels):,} labels; "
                f"CIFAR-10 has {number:,}"
            )
        counts = np.bincount(labels, minlength=CLASSES)
        if (counts != number // CLASSES).any():
            raise ProblemError(
                f"{path} holds {counts.min():,} to {counts.max():,} {split} images of a class; "
                f"CIFAR-10 has {number // CLASSES:,}"
            )


def save(folder: Path, origin: str, arrays: dict[str, Bytes]) -> None:
    """Write the arrays, and beside them a description with their hash."""
    folder.mkdir(parents=True, exist_ok=True)
    described = {
        "origin": origin,
        "sha256": fingerprint(arrays),
        "shapes": {name: list(arrays[name].shape) for name in ARRAYS},
    }
    for name, beside in (("images.npz", ".images.part"), ("images.json", ".description.part")):
        with (folder / beside).open("wb") as stream:
            if name == "images.npz":
                np.savez(stream, **arrays)
            else:
                stream.write(f"{json.dumps(described, indent=1)}\n".encode())
        (folder / beside).replace(folder / name)


def load(folder: Path) -> Data:
    """Read what ``prepare_data.py`` wrote.

    Raises:
        ProblemError: it is not there, not whole or not what was written.
    """
    if not (folder / "images.npz").is_file() or not (folder / "images.json").is_file():
        what = "is empty or holds something else" if folder.is_dir() else "does not exist"
        raise ProblemError(
            f"the data folder {folder} {what}: "
            f"make it with `python prepare_data.py --data-path={folder}`"
        )
    try:
        described = json.loads((folder / "images.json").read_text(encoding="utf-8"))
        # numpy leaves a file that it opened itself open when it is damaged.
        with (
            (folder / "images.npz").open("rb") as stream,
            np.load(stream, allow_pickle=False) as archive,
        ):
            arrays = {name: archive[name] for name in ARRAYS}
        whole = described["sha256"] == fingerprint(arrays)
        origin = str(described["origin"])
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise _damaged(folder, f": {error}") from None
    if not whole:
        raise _damaged(folder, "")
    return Data(origin, **arrays)


def _damaged(folder: Path, why: str) -> ProblemError:
    return ProblemError(
        f"the data in {folder} are damaged{why}; delete the folder and make it again with "
        f"`python prepare_data.py --data-path={folder}`"
    )


def generate(train: int = 1_000, test: int = 1_000) -> dict[str, Bytes]:
    """Draw images of ten classes: stripes of a direction and width each, with colours at random.

    The same images every time. They stand in for CIFAR-10 where a test has no network.
    """
    random = np.random.default_rng(20)
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    arrays = {}
    for split, number in (("train", train), ("test", test)):
        labels = np.arange(number) % CLASSES
        angle = (labels % 5) * np.pi / 5 + random.normal(0, 0.05, number)
        width = np.where(labels < 5, 5.0, 11.0)
        along = np.cos(angle)[:, None, None] * rows + np.sin(angle)[:, None, None] * columns
        shift = random.uniform(0, 2 * np.pi, (number, 1, 1))
        waves = np.sin(2 * np.pi * along / width[:, None, None] + shift)
        colour = random.uniform(70, 185, (number, 3, 1, 1))
        strength = random.uniform(25, 60, (number, 3, 1, 1))
        images = colour + strength * waves[:, None] + random.normal(0, 40, (number, 3, SIDE, SIDE))
        arrays[f"{split}_images"] = np.clip(images, 0, 255).astype(np.uint8)
        arrays[f"{split}_labels"] = labels.astype(np.uint8)
    return arrays
