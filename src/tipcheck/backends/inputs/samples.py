"""The inputs a model is looked at with: the user's arrays or pictures, or drawn from its specs.

Whatever they come from, each sample becomes one ``.npz`` file with an array per input, and has been
held against the model's specs by then: a wrong name, shape or dtype is said before anything runs.
"""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.inputs.drawn import Size, make_feed
from tipcheck.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from tipcheck.backends.subject import InputSpec

    Array = npt.NDArray[Any]
    Feed = dict[str, Array]
    Prepare = Callable[[Path], "Array | Mapping[str, Array]"]

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_USUAL_SIDE = 224
_PICTURE_AXES = 4
_NAMES_SHOWN = 6


def drawn(
    specs: Sequence[InputSpec],
    folder: Path,
    *,
    count: int = 1,
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> list[Path]:
    """Draw samples from normal numbers; the same for the same seed.

    Args:
        specs: the model's inputs.
        folder: where the files go.
        count: how many samples.
        seed: of the first; the next ones count on.
        shapes: shapes of inputs whose axes the model leaves open, by name.
    """
    fixed = [_with_shape(spec, (shapes or {}).get(spec.name)) for spec in specs]
    unknown = set(shapes or {}).difference(spec.name for spec in specs)
    if unknown:
        names = ", ".join(spec.name for spec in specs)
        raise UsageError(f"the model has no input {min(unknown)!r}", hint=f"its inputs are {names}")
    return [
        _write(make_feed(fixed, "normal", Size(), seed + number), folder, number)
        for number in range(count)
    ]


def given(
    sources: Sequence[Path],
    specs: Sequence[InputSpec],
    folder: Path,
    *,
    prepare: Prepare | None = None,
    limit: int = 0,
) -> list[tuple[str, Path]]:
    """Return name and file of each sample in files and folders, checked against the specs.

    Args:
        sources: ``.npz`` files, pictures, or folders of them.
        specs: the model's inputs.
        folder: where files that have to be made go.
        prepare: makes an input out of the path of a picture; by default it is resized to what the
            model takes, scaled to 0..1 and normalised as for ImageNet.
        limit: take so many at most; 0 takes all.
    """
    files = [file for source in sources for file in _files(source)]
    files = files[:limit] if limit else files
    samples = []
    for number, file in enumerate(files):
        if file.suffix == ".npz":
            check_feed(file, specs)
            samples.append((file.name, file.absolute()))
        else:
            feed = _picture(file, specs, prepare)
            samples.append((file.name, _write(feed, folder, number)))
            check_feed(samples[-1][1], specs, called=str(file))
    return samples


def load_function(text: str) -> Callable[..., Any]:
    """Return the function that ``module:function`` names; the working folder is searched too."""
    module, _, name = text.partition(":")
    if not name:
        raise UsageError(f"{text!r} names no function", hint="write it as module:function")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"cannot be imported ({error})", where=text, hint="check the spelling, or PYTHONPATH"
        ) from None
    finally:
        sys.path.pop(0)
    return found


def check_feed(file: Path, specs: Sequence[InputSpec], called: str = "") -> None:
    """Refuse a sample that does not fit the model.

    Raises:
        UsageError: it cannot be read, or a name, a shape or a dtype is not the model's.
    """
    where = called or str(file)
    try:
        # Opened here, because numpy forgets a file that turns out to be none of its own.
        with file.open("rb") as source, np.load(source, allow_pickle=False) as archive:
            feed = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        told = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise UsageError(
            f"cannot be read as arrays ({told})", where=where, hint="save it with numpy.savez"
        ) from None
    names = [spec.name for spec in specs]
    missing = [name for name in names if name not in feed]
    if missing:
        some = list(feed)[:_NAMES_SHOWN] + ["…"] * (len(feed) > _NAMES_SHOWN)
        there = ", ".join(some) or "nothing"
        raise UsageError(
            f"has no array for input {missing[0]!r}; it holds {there}",
            where=where,
            hint=f"save it with numpy.savez(FILE, {', '.join(f'{name}=…' for name in names)})",
        )
    for spec in specs:
        _check_array(spec, feed[spec.name], where)


def _check_array(spec: InputSpec, array: Array, where: str) -> None:
    wanted = "uint16" if spec.dtype == "bfloat16" else spec.dtype
    if array.dtype != np.dtype(wanted):
        raise UsageError(
            f"input {spec.name!r} is {array.dtype.name}, the model takes {spec.dtype}",
            where=where,
            hint=f"save it with .astype({wanted!r})",
        )
    fits = len(array.shape) == len(spec.shape) and all(
        want < 0 or want == have for want, have in zip(spec.shape, array.shape, strict=True)
    )
    if not fits:
        shape = [extent if extent >= 0 else "any" for extent in spec.shape]
        raise UsageError(
            f"input {spec.name!r} has shape {list(array.shape)}, the model takes {shape}",
            where=where,
            hint="reshape it before saving",
        )


def _files(source: Path) -> list[Path]:
    if source.is_file():
        if source.suffix != ".npz" and source.suffix.lower() not in PICTURES:
            hint = "give an .npz file, a picture, or a folder of them"
            raise UsageError("is no sample", where=str(source), hint=hint)
        return [source]
    if not source.is_dir():
        raise UsageError("is not there", where=str(source), hint="give an .npz file or a folder")
    known = (*PICTURES, ".npz")
    found = sorted(file for file in source.rglob("*") if file.suffix.lower() in known)
    if not found:
        raise UsageError("holds no pictures and no .npz files", where=str(source))
    return found


def _picture(file: Path, specs: Sequence[InputSpec], prepare: Prepare | None) -> Feed:
    if prepare is not None:
        made = prepare(file)
        if isinstance(made, np.ndarray):
            return {specs[0].name: made}
        return {name: np.asarray(array) for name, array in dict(made).items()}
    pictures = [spec for spec in specs if len(spec.shape) == _PICTURE_AXES]
    if len(specs) != 1 or not pictures:
        raise UsageError(
            "the model takes more than one picture, so what to make of the file is not clear",
            where=str(file),
            hint="give --preprocess module:function, which returns a dict of arrays",
        )
    return {specs[0].name: _read_picture(file, specs[0])}


def _read_picture(file: Path, spec: InputSpec) -> Array:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ToolError(
            "pictures need Pillow, which is not installed", hint="pip install pillow"
        ) from None
    channels, height, width = spec.shape[1:]
    size = (width if width > 0 else _USUAL_SIDE, height if height > 0 else _USUAL_SIDE)
    try:
        with Image.open(file) as opened:
            picture = opened.convert("L" if channels == 1 else "RGB").resize(size)
    except (OSError, UnidentifiedImageError) as error:
        raise UsageError(f"cannot be read as a picture ({error})", where=str(file)) from None
    pixels = np.asarray(picture, np.float32).reshape(size[1], size[0], -1) / 255.0
    if pixels.shape[2] == len(_MEAN):
        pixels = (pixels - np.array(_MEAN, np.float32)) / np.array(_STD, np.float32)
    batch = max(spec.shape[0], 1)
    whole = np.repeat(pixels.transpose(2, 0, 1)[None], batch, axis=0)
    if spec.dtype == "bfloat16":
        return np.asarray((whole.view(np.uint32) >> 16).astype(np.uint16))
    return np.ascontiguousarray(whole, spec.dtype)


def _with_shape(spec: InputSpec, shape: Sequence[int] | None) -> InputSpec:
    if shape is None:
        return spec
    fits = len(shape) == len(spec.shape) and all(
        want < 0 or want == have for want, have in zip(spec.shape, shape, strict=True)
    )
    if not fits or any(extent < 1 for extent in shape):
        open_axes = [extent if extent >= 0 else "any" for extent in spec.shape]
        raise UsageError(
            f"input {spec.name!r} cannot have shape {list(shape)}",
            hint=f"the model takes {open_axes}",
        )
    return type(spec)(spec.name, tuple(shape), spec.dtype, spec.below)


def _write(feed: Feed, folder: Path, number: int) -> Path:
    path = folder / f"sample_{number}.npz"
    np.savez(path, **feed)  # type: ignore[arg-type]
    return path
