"""From an image file to the array the network takes: the same for training and deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from mobilenet.problems import ProblemError

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_STD = np.array([0.229, 0.224, 0.225], np.float32)


def read_image(path: Path) -> Image.Image:
    """Read an image file.

    Raises:
        ProblemError: the file is missing or is not an image that can be read.
    """
    try:
        with Image.open(path) as image:
            converted: Image.Image = image.convert("RGB")
    except FileNotFoundError:
        raise ProblemError(f"{path} does not exist") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ProblemError(f"{path} is not a readable image: {reason}") from None
    return converted


def find_images(path: Path) -> list[Path]:
    """Return the image at ``path``, or all images of the folder ``path``, sorted by name.

    Raises:
        ProblemError: there is no such path, or the folder holds no image.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ProblemError(f"{path} does not exist")
    found = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
    if not found:
        raise ProblemError(f"the folder {path} holds no image ({', '.join(SUFFIXES)})")
    return found


def preprocess(image: Image.Image, size: int) -> npt.NDArray[np.float32]:
    """Scale the short side to 8/7 of ``size``, cut the centre out, normalise."""
    scale = size * 8 / 7 / min(image.size)
    width, height = (max(size, round(side * scale)) for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - size) // 2, (height - size) // 2
    return _normalise(image.crop((left, top, left + size, top + size)))


def augment(image: Image.Image, size: int, random: np.random.Generator) -> npt.NDArray[np.float32]:
    """Cut a random square out, mirror every second one, normalise."""
    short = min(image.size)
    side = int(short * random.uniform(0.7, 1.0))
    left = int(random.integers(0, image.size[0] - side + 1))
    top = int(random.integers(0, image.size[1] - side + 1))
    box = (left, top, left + side, top + side)
    cut = image.resize((size, size), Image.Resampling.BILINEAR, box=box)
    if random.random() < 0.5:
        cut = cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return _normalise(cut)


def _normalise(image: Image.Image) -> npt.NDArray[np.float32]:
    pixels: npt.NDArray[Any] = np.asarray(image, np.float32) / np.float32(255)
    return np.ascontiguousarray(((pixels - _MEAN) / _STD).transpose(2, 0, 1))
