"""Inputs that make sense to each model: a written line for the OCR models, a scene for ResNet50.

Random numbers would do for a comparison of shapes. But a detector that finds nothing, or a
recogniser that reads nothing, answers with zeros everywhere, and zeros hide differences.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

TEXT = "PaddlePaddle 2025"
Array = npt.NDArray[np.float32]


def written_line(width: int, height: int, size: int, *, turned: bool = False) -> Image.Image:
    """Draw the text in the middle of a light page."""
    page = Image.new("RGB", (width, height), (245, 243, 238))
    font = ImageFont.load_default(size)
    draw = ImageDraw.Draw(page)
    left, top, right, bottom = draw.textbbox((0, 0), TEXT, font=font)
    place = ((width - right - left) / 2, (height - bottom - top) / 2)
    draw.text(place, TEXT, fill=(30, 30, 40), font=font)
    return page.rotate(180) if turned else page


def normalised(images: list[Image.Image], mean: list[float], std: list[float]) -> Array:
    """Return images as the models take them: channels first, normalised, one batch."""
    pixels = np.stack([np.asarray(image, np.float32) for image in images]) / np.float32(255)
    values = (pixels - np.array(mean, np.float32)) / np.array(std, np.float32)
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2))


def scene(number: int, size: int = 224) -> Image.Image:
    """Draw a few overlapping shapes on a gradient: flat parts, edges and textures."""
    random = np.random.default_rng(number)
    rows, columns = np.mgrid[0:size, 0:size] / size
    ground = [160 * rows + 60, 150 * columns + 40, 120 * (1 - rows) + 70]
    image = Image.fromarray(np.stack(ground, axis=-1).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(12):
        x, y, w, h = (int(value) for value in random.integers(10, size * 3 // 4, 4))
        colour = tuple(int(value) for value in random.integers(0, 256, 3))
        shape = draw.ellipse if random.random() < 0.5 else draw.rectangle
        shape((x, y, x + w // 2, y + h // 2), fill=colour)
    noise = random.normal(0, 8, (size, size, 3))
    return Image.fromarray(np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8))


def inputs_of(model: str) -> Array:
    """Return sample inputs of a model."""
    half = [0.5, 0.5, 0.5]
    if model == "resnet50":
        photos = [scene(number) for number in range(2)]
        return normalised(photos, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    if model == "ocr_det":
        return normalised([written_line(320, 192, 28)], half, half)
    if model == "ocr_rec":
        return normalised([written_line(320, 48, 30)], half, half)
    lines = [written_line(192, 48, 18), written_line(192, 48, 18, turned=True)]
    return normalised(lines, half, half)
