"""Output streams that outlive their reader, so that ``tipcheck ... | head -1`` keeps its exit code.

Python raises BrokenPipeError once the reader has gone, and rich ends the process with exit code 1
then, which would read as a failed check. Here what nobody reads is thrown away, the command goes
on, and its exit code says what it found. A full disk is another matter: that output was wanted.
"""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from typing import Any


class _Patient(io.FileIO):
    """A file descriptor that turns to the null device when nothing can be written to it."""

    problem = ""

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - whatever holds bytes
        """Write, to nowhere if nobody reads or nothing fits."""
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.problem = error.strerror or str(error)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return len(data)


def be_patient() -> None:
    """Make the output and error streams of this process patient, and able to print any text."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper):
            continue  # closed by whoever started this process, or replaced by a test
        stream.flush()
        patient = io.TextIOWrapper(
            io.BufferedWriter(_Patient(stream.fileno(), "w", closefd=False)),
            encoding=stream.encoding,
            errors="replace",
            line_buffering=stream.line_buffering or stream.write_through,
        )
        setattr(sys, name, patient)


def lost() -> str:
    """Write out what is still held back; say why the output is not complete, if it is not."""
    if not isinstance(sys.stdout, io.TextIOWrapper):
        return ""
    sys.stdout.flush()
    return str(getattr(sys.stdout.buffer.raw, "problem", ""))
