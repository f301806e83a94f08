"""Fashion-MNIST: 60,000 training and 10,000 test images of 28x28 pixels, from a Debian package.

Looked for in ``$FASHION_MNIST``, in ``/usr/share/datasets/fashion-mnist`` and in
``build/fashion-mnist``; else the package (30.9 MB) is fetched with apt and unpacked into the last,
without root.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

PACKAGE = "dataset-fashion-mnist"
INSIDE = Path("usr/share/datasets/fashion-mnist")
BUILD = Path(__file__).parents[1] / "build" / "fashion-mnist"
MEAN, DEVIATION = np.float32(72.94), np.float32(90.02)  # of the training images
ENDING = "-ubyte.gz"
# SHA-256 of what is in the files; how they were compressed differs.
FILES = {
    "train-images-idx3": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}


def load(split: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return images and labels of ``train`` or ``t10k``; pixels have mean 0 and deviation 1."""
    folder = _folder()
    images = _read(folder / f"{split}-images-idx3{ENDING}", 16).reshape(-1, 1, 28, 28)
    labels = _read(folder / f"{split}-labels-idx1{ENDING}", 8)
    return (images.astype(np.float32) - MEAN) / DEVIATION, labels.astype(np.int64)


def _read(path: Path, head: int) -> NDArray[Any]:
    data = gzip.decompress(path.read_bytes())
    found = hashlib.sha256(data).hexdigest()
    if found != FILES[path.name.removesuffix(ENDING)]:
        raise SystemExit(f"{path} holds something else (SHA-256 {found}); delete it")
    return np.frombuffer(data, np.uint8, offset=head)


def _folder() -> Path:
    asked = os.environ.get("FASHION_MNIST")
    places = [Path(asked)] if asked else [Path("/", INSIDE), BUILD / INSIDE]
    for place in places:
        if all((place / f"{name}{ENDING}").is_file() for name in FILES):
            return place
    if asked:
        raise SystemExit(
            f"FASHION_MNIST={asked}: the four files {', '.join(FILES)} ({ENDING}) are not there"
        )
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", PACKAGE], cwd=BUILD, check=True)
    package = max(BUILD.glob(f"{PACKAGE}_*.deb"))
    subprocess.run(["dpkg", "-x", package, BUILD], check=True)
    return BUILD / INSIDE
