"""Finds the samples of a full data set: class folders, or list files as ImageNet has them.

Three forms are understood: ``train_list.txt`` and ``val_list.txt`` with ``path label`` lines;
``train/`` and ``val/`` with a folder for each class; and class folders without a split, which is
then made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tipcheck.config_plans.lite_data.picture import SUFFIXES
from tipcheck.errors import ToolError, UsageError

PARTS = ("train", "val")
_FOLDERS = {"train": ("train",), "val": ("val", "valid", "validation")}
_LISTS = ("{}_list.txt", "{}.txt", "{}.lst", "{}.list")


@dataclass(frozen=True, slots=True)
class Sample:
    """One picture of a data set.

    Attributes:
        path: relative to the data set, with slashes.
        group: what it is a sample of: its class folder, or its label.
        target: where it goes in the small set, relative to that.
        line: its line in a list file, or nothing.
    """

    path: str
    group: str
    target: str
    line: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A data set.

    Attributes:
        root: its folder.
        form: what it was found to be, for the user.
        samples: by part; those of ``train`` serve both parts where there is no split.
        lists: name of the list file of each part, if there are any.
        empty: class folders without a picture.
    """

    root: Path
    form: str
    samples: Mapping[str, tuple[Sample, ...]]
    lists: Mapping[str, str]
    empty: tuple[str, ...] = ()

    @property
    def is_split(self) -> bool:
        """Whether the data set itself says what is for training and what for validation."""
        return "val" in self.samples


def find_source(root: Path) -> Source:
    """Return the samples of a data set.

    Raises:
        UsageError: there is no such folder, or it holds no data set of a known form.
        ToolError: it cannot be read.
    """
    if not root.is_dir():
        raise UsageError("no such folder", where=str(root), hint="give the folder of a data set")
    try:
        return _from_lists(root) or _from_folders(root)
    except OSError as error:
        raise ToolError(
            f"cannot be read ({error.strerror})", where=str(error.filename or root)
        ) from None


def _from_lists(root: Path) -> Source | None:
    names = {
        part: next((n for p in _LISTS if (root / (n := p.format(part))).is_file()), "")
        for part in PARTS
    }
    found = [part for part in PARTS if names[part]]
    if not found:
        return None
    if len(found) == 1:
        missing = next(part for part in PARTS if part not in found)
        raise UsageError(
            f"has {names[found[0]]} but no list for {missing}",
            where=str(root),
            hint=f"add {_LISTS[0].format(missing)}",
        )
    samples = {part: _listed(root, names[part]) for part in PARTS}
    return Source(root, "list files", samples, names)


def _listed(root: Path, name: str) -> tuple[Sample, ...]:
    samples = []
    try:
        text = (root / name).read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("is not UTF-8 text", where=str(root / name)) from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        pair = line.split("\t", 1) if "\t" in line else line.rsplit(None, 1)
        path = pair[0].strip()
        pure = PurePosixPath(path)
        if len(pair) < 2 or not path or pure.is_absolute() or ".." in pure.parts:
            raise UsageError(
                f"{line[:60]!r} is no line of the form 'path label'",
                where=f"{root / name}:{number}",
                hint="write paths relative to the data set, then a blank or tab, then the label",
            )
        samples.append(Sample(path, pair[1].strip(), pure.as_posix(), line.strip()))
    if not samples:
        raise UsageError("lists nothing", where=str(root / name))
    return tuple(dict.fromkeys(samples))


def _from_folders(root: Path) -> Source:
    folders = {
        part: next((name for name in _FOLDERS[part] if (root / name).is_dir()), "")
        for part in PARTS
    }
    empty: list[str] = []
    if folders["train"] and folders["val"]:
        samples = {part: _in_classes(root, folders[part], part, empty) for part in PARTS}
        form = f"class folders in {folders['train']}/ and {folders['val']}/"
    elif folders["train"]:
        samples = {"train": _in_classes(root, folders["train"], "", empty)}
        form = f"class folders in {folders['train']}/, not split"
    else:
        samples = {"train": _in_classes(root, "", "", empty)}
        form = "class folders, not split"
    for part, found in samples.items():
        if not found:
            raise UsageError(
                f"no picture found{' for ' + part if 'val' in samples else ''}",
                where=str(root / (folders[part] or "")),
                hint="expected are list files (train_list.txt, val_list.txt), train/ and val/ with "
                f"class folders, or class folders, with {' '.join(SUFFIXES)} files",
            )
    return Source(root, form, samples, {}, tuple(empty))


def _in_classes(root: Path, folder: str, part: str, empty: list[str]) -> tuple[Sample, ...]:
    """Return the pictures in the class folders of a folder, and note those without any."""
    base = root / folder
    samples = []
    for group in sorted(path.name for path in base.iterdir() if path.is_dir()):
        if group.startswith("."):
            continue
        found = [
            path.relative_to(base).as_posix()
            for path in (base / group).rglob("*")
            if path.suffix.lower() in SUFFIXES and path.is_file()
        ]
        if not found:
            empty.append(PurePosixPath(folder, group).as_posix())
        samples += [
            Sample(
                PurePosixPath(folder, path).as_posix(), group, PurePosixPath(part, path).as_posix()
            )
            for path in sorted(found)
        ]
    return tuple(samples)
