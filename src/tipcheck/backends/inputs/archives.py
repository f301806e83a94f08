"""A user's ``.npz`` file, read whole; whatever is wrong with it is said in one line.

numpy raises half a dozen kinds of errors for files that are cut off, damaged, pickled or something
else altogether, and for a single array it returns no archive at all.
"""

from __future__ import annotations

import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    Feed = dict[str, npt.NDArray[Any]]

_BROKEN = (OSError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)
_AGAIN = "save it with numpy.savez(PATH, name=array)"
_LONGEST = 100


def read_feed(file: Path, where: str = "") -> Feed:
    """Return the arrays of a file by name.

    Args:
        file: what to read; nothing in it is unpickled.
        where: what the user calls it, if not by its path.

    Raises:
        UsageError: it cannot be read, or holds something else.
    """
    where = where or str(file)
    try:
        with file.open("rb") as stream:
            if not zipfile.is_zipfile(stream):
                is_array = stream.seek(0) == 0 and stream.read(6) == b"\x93NUMPY"
                what = "one array without a name" if is_array else "no .npz archive"
                raise UsageError(f"cannot be read (it is {what})", where=where, hint=_AGAIN)
        # Opened here, because numpy forgets a file that turns out to be none of its own.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            feed = {name: archive[name] for name in archive.files}
    except _BROKEN as error:
        told = getattr(error, "strerror", None) or " ".join(str(error).split())[:_LONGEST]
        raise UsageError(f"cannot be read ({told})", where=where, hint=_AGAIN) from None
    for name, value in feed.items():
        if not isinstance(value, np.ndarray):  # numpy gives the bytes of what it does not know
            raise UsageError(f"cannot be read ({name} is no array)", where=where, hint=_AGAIN)
    return feed
