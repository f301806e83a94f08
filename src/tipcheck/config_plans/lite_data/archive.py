"""Writes a small data set as a folder and as a tar that is the same byte for byte everywhere.

Names are sorted; times, owners and permissions are fixed; nothing is compressed, because pictures
are already and because compressors differ. Both are written beside their place and moved there
when they are whole.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tipcheck.config_plans.lite_data.choice import LARGEST_TAR
from tipcheck.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tipcheck.config_plans.lite_data.choice import LiteData

_LONG_AGO = 946_684_800  # 2000-01-01: tar warns of 1970


@dataclass(frozen=True, slots=True)
class Written:
    """What was written.

    Attributes:
        folder, tar: where.
        size: bytes of the tar.
        sha256: its digest, to compare between machines.
    """

    folder: Path
    tar: Path
    size: int
    sha256: str


def check_target(source: Path, folder: Path) -> None:
    """Refuse a place for the small set that holds something or is part of the full one.

    Raises:
        UsageError: it cannot be used.
    """
    if not folder.name:
        raise UsageError("is no name for a folder", where=str(folder), hint="write ./lite_data")
    for path in (folder, _tar_of(folder)):
        if path.exists() or path.is_symlink():
            raise UsageError(
                "exists", where=str(path), hint="remove it, or choose another name for the set"
            )
    if folder.resolve().is_relative_to(source.resolve()):
        raise UsageError(
            f"lies inside the data set {source}", where=str(folder), hint="choose a place outside"
        )


def write(data: LiteData, folder: Path) -> Written:
    """Write a small data set as ``folder`` and ``folder.tar``.

    Raises:
        UsageError: the tar would be too large, or a name cannot be in one.
        ToolError: it cannot be written.
    """
    archive = pack(folder.name, data.files)
    if len(archive) > LARGEST_TAR:
        count = sum(data.counts.values())
        fit = max(1, int(count * LARGEST_TAR / len(archive) * 0.9))
        raise UsageError(
            f"the tar would have {len(archive) / 1e6:.1f} MB, more than {LARGEST_TAR / 1e6:.0f} MB",
            where=str(folder),
            hint=f"nothing was written; ask for fewer samples (about {fit} in all with --train and "
            "--val), or make the pictures of the data set smaller first",
        )
    tar = _tar_of(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".lite-data-", dir=folder.parent) as work:
            _unfold(Path(work, "set"), data.files)
            Path(work, "tar").write_bytes(archive)
            Path(work, "set").rename(folder)
            Path(work, "tar").rename(tar)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ToolError(
            f"cannot be written ({error.strerror})", where=str(folder), hint="choose another place"
        ) from None
    return Written(folder, tar, len(archive), hashlib.sha256(archive).hexdigest())


def pack(name: str, files: Mapping[str, bytes]) -> bytes:
    """Return a tar of files in a folder ``name``.

    Raises:
        UsageError: a name is no UTF-8 text.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in _members(name, files):
            info = tarfile.TarInfo(path)
            info.mtime = _LONG_AGO
            info.mode = 0o755 if data is None else 0o644
            if data is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data or b""))
    return buffer.getvalue()


def _members(name: str, files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes | None]]:
    """Yield folders and files in order, a folder before what is in it."""
    members: dict[str, bytes | None] = {name: None}
    for path, data in files.items():
        full = PurePosixPath(name, path)
        for parent in full.parents:
            if parent.name:
                members[parent.as_posix()] = None
        members[full.as_posix()] = data
    for path in sorted(members, key=lambda text: PurePosixPath(text).parts):
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(
                f"{os.fsencode(path)!r} is no UTF-8 name", hint="rename it in the data set"
            ) from None
        yield path, members[path]


def _unfold(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir()
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _tar_of(folder: Path) -> Path:
    return folder.with_name(folder.name + ".tar")
