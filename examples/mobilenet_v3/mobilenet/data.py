"""The data set: a folder per split, in it a folder per class, in it images; or the IDX files.

The first is what ``tools/prepare_data.py`` makes of 20 photographs, the second the 70,000 small
pictures of Fashion-MNIST that ``tools/prepare_whole_data.py`` makes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import paddle
from PIL import Image

from mobilenet.idx import CLASSES, FILES, read_idx
from mobilenet.images import SUFFIXES, augment, preprocess, read_image
from mobilenet.problems import ProblemError

Sample = tuple[npt.NDArray[np.float32], np.int64]
PHOTO_SIZE = 64
"""Enough to learn 14 photographs by heart; with the usual 224, most of a lite chain on a CPU would
be convolutions."""
REMEMBERED = 100
"""So many images of a split are kept once they are read: every epoch needs them again."""
IDX_SIZE = 32


def is_idx(root: Path) -> bool:
    """Whether a data set is of the kind with all images in one file."""
    return (root / FILES["train"][0]).is_file()


def usual_size(root: Path) -> int:
    """Return the side of images, in pixels, that suits a data set."""
    return IDX_SIZE if is_idx(root) else PHOTO_SIZE


def class_names(root: Path) -> list[str]:
    """Return the names of the classes: the folders below ``root``/train, sorted.

    Raises:
        ProblemError: there is no such folder, or no class in it.
    """
    train = root / "train"
    if is_idx(root):
        if not (root / CLASSES).is_file():
            raise ProblemError(f"{root} holds no {CLASSES} (tools/prepare_whole_data.py makes it)")
        names = (root / CLASSES).read_text().split()
    elif not train.is_dir():
        raise ProblemError(
            f"{train} does not exist: --data-path is a folder with train/CLASS/IMAGE and "
            "val/CLASS/IMAGE (tools/prepare_data.py makes ./lite_data, "
            "tools/prepare_whole_data.py ./whole_data)"
        )
    else:
        names = sorted(folder.name for folder in train.iterdir() if folder.is_dir())
    if not names:
        raise ProblemError(f"{train} holds no class folder")
    return names


class Samples(paddle.io.Dataset):  # type: ignore[misc]
    """The images of one split, with the index of their class.

    Random cuts depend on the seed, the epoch and the image only: not on the order of reading, the
    number of processes, or whether the training was interrupted.
    """

    def __init__(self, root: Path, split: str, *, size: int, seed: int | None = None) -> None:
        super().__init__()
        self.size = size
        self.seed = seed
        self.epoch = 0
        self.files: list[Path] = []
        self.pixels: npt.NDArray[np.uint8] | None = None
        self.labels: list[int] = []
        self._read: dict[int, Image.Image] = {}
        self._prepared: dict[int, npt.NDArray[np.float32]] = {}
        if is_idx(root):
            self._open_idx(root, split)
        else:
            self._open_folders(root, split)

    def _open_idx(self, root: Path, split: str) -> None:
        pixels, labels = (read_idx(root / name) for name in FILES[split])
        classes = len(class_names(root))
        if pixels.ndim != 3 or labels.shape != pixels.shape[:1] or not len(labels):
            raise ProblemError(f"{root}: the files of {split} do not belong together")
        if int(labels.max()) >= classes:
            raise ProblemError(f"{root}: {split} has more classes than {CLASSES} has names")
        self.pixels = pixels
        self.labels = labels.tolist()

    def _open_folders(self, root: Path, split: str) -> None:
        names = class_names(root)
        folder = root / split
        for path in sorted(folder.glob("*/*")):
            if path.suffix.lower() not in SUFFIXES:
                continue
            if path.parent.name not in names:
                raise ProblemError(f"{path} is of a class that {root / 'train'} does not have")
            self.files.append(path)
            self.labels.append(names.index(path.parent.name))
        if not self.files:
            raise ProblemError(f"{folder} holds no image (expected {folder}/CLASS/IMAGE)")

    def name(self, index: int) -> str:
        """Return what an image is called in the log: its file, or its number."""
        return str(index) if self.pixels is not None else self.files[index].stem

    def image(self, index: int) -> Image.Image:
        """Return an image as it is stored."""
        if self.pixels is not None:
            return Image.fromarray(self.pixels[index]).convert("RGB")
        image = self._read.get(index)
        if image is None:
            image = read_image(self.files[index])
            if len(self._read) < REMEMBERED:
                self._read[index] = image
        return image

    def batch(self, indices: list[int]) -> tuple[paddle.Tensor, paddle.Tensor]:
        """Read some samples into one tensor of images and one of labels."""
        images, labels = zip(*(self[index] for index in indices), strict=True)
        return paddle.to_tensor(np.stack(images)), paddle.to_tensor(np.stack(labels))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Sample:
        label = np.int64(self.labels[index])
        if self.seed is None:
            return self._same_every_time(index), label
        random = np.random.default_rng((self.seed, self.epoch, index))
        return augment(self.image(index), self.size, random), label

    def _same_every_time(self, index: int) -> npt.NDArray[np.float32]:
        pixels = self._prepared.get(index)
        if pixels is None:
            pixels = preprocess(self.image(index), self.size)
            if len(self._prepared) < REMEMBERED:
                self._prepared[index] = pixels
        return pixels
