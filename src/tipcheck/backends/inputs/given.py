"""Inputs that the user has: an ``.npz`` file, a folder of images, or a Python callable.

Runs in a worker, because a preprocessing function is the user's code and may import anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.layers.source import find_object
from tipcheck.backends.told import told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Answer = Callable[[Mapping[str, Any]], None]

IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".npy")


def make_given(job: dict[str, Any], answer: Answer) -> None:
    """Write one file per set of inputs, and say which."""
    names = [item["name"] for item in job["inputs"]]
    folder = Path(job["room"])
    try:
        for number, (name, made) in enumerate(_sets(job)):
            feed = _named(made, names)
            target = folder / f"given_{number}.npz"
            np.savez(target, **feed)
            answer({"given": name, "archive": target.name})
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is the answer
        answer({"problem": told(error)})


def _sets(job: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    path = tuple(job["path"])
    images = job.get("images")
    if not images:
        made = find_object(job["callable"], path)()
        if isinstance(made, (dict, np.ndarray)) or hasattr(made, "numpy"):
            made = [made]
        for number, feed in enumerate(made):
            yield f"{job['callable']} {number}", feed
        return
    prepare = find_object(job["preprocess"], path)
    files = sorted(
        file for file in Path(images).iterdir() if file.suffix.lower() in IMAGES and file.is_file()
    )
    for file in files[: int(job["most"])]:
        yield file.name, prepare(str(file))


def _named(made: Any, names: list[str]) -> dict[str, Any]:  # noqa: ANN401
    """Return arrays by input name, whatever form the user's function gave them in."""
    if isinstance(made, dict):
        return {str(name): _array(value) for name, value in made.items()}
    values = list(made) if isinstance(made, (list, tuple)) else [made]
    if len(values) != len(names):
        raise ValueError(f"gave {len(values)} arrays for {len(names)} inputs ({', '.join(names)})")
    return {name: _array(value) for name, value in zip(names, values, strict=True)}


def _array(value: Any) -> Any:  # noqa: ANN401
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype.hasobject:
        raise ValueError("gave Python objects, not numbers")
    return array
