"""A step's log: written live, bounded, and never the reason why a step hangs.

The first part of the output is written as it comes. Once the log has reached its limit, only the
newest output is remembered, and written when the step ends: the beginning says what ran, the end
says why it failed, and 1 GB between them is left out with a line that says so. A full disk loses
output, which is noted, but the step goes on.

While the output passes, two kinds of lines are looked for: the one with which a step says that it
tested nothing of what it was for (``tipcheck: hollow: WHY``, at the start of a line, on stdout or
stderr), and warnings of frameworks that mean the same (``SIGNS``).
"""

from __future__ import annotations

import contextlib
import os

HOLLOW_LINE = b"tipcheck: hollow:"

SIGNS: tuple[tuple[bytes, str], ...] = (
    (
        b"amp_guard can only be enabled on",
        "paddle switched AMP off: auto_cast has no effect on this device",
    ),
    (
        b"amp only support NVIDIA GPU with Compute Capability",
        "paddle switched AMP off: this GPU does not support the data type",
    ),
)
"""What frameworks print when they silently do not do what was asked, and what it means."""

_TAIL = 256 * 1024
_LONGEST_LINE = 4096
_NOTE = 300
_LAST_WORDS = 400


class SignReader:
    """Finds the hollow line or a sign in a stream of chunks, wherever the chunks are cut."""

    def __init__(self) -> None:
        self.found = ""
        self._carry = b"\n"

    def feed(self, chunk: bytes) -> None:
        """Look at the next chunk of the stream."""
        text = self._carry + chunk
        self._look(text)
        longest = max(len(needle) for needle in (HOLLOW_LINE, *(sign for sign, _ in SIGNS)))
        self._carry = text[-longest - 1 :]
        start = text.rfind(b"\n" + HOLLOW_LINE)
        if start >= 0 and len(text) - start < _LONGEST_LINE and b"\n" not in text[start + 1 :]:
            self._carry = text[start:]

    def finish(self) -> None:
        """Say that the stream has ended: a last line without a newline counts too."""
        self._look(self._carry + b"\n")

    def _look(self, text: bytes) -> None:
        start = text.find(b"\n" + HOLLOW_LINE)
        if start >= 0:
            start += 1 + len(HOLLOW_LINE)
            end = text.find(b"\n", start, start + _LONGEST_LINE)
            if end >= 0:
                words = text[start:end].decode("utf-8", "replace").strip()
                self.found = words[:_NOTE] or "it said so without a reason"
            return
        if not self.found:
            for sign, meaning in SIGNS:
                if sign in text:
                    self.found = meaning


class BoundedLog:
    """A log file that holds at most ``limit`` bytes of output, its beginning and its end."""

    def __init__(self, path: str, limit: int) -> None:
        """Create the file, and its folder when it is missing.

        Raises:
            OSError: neither can be made.
        """
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - keeper stays small
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        self._fd = os.open(path, flags, 0o666)
        self._room = limit
        self._limit = limit
        self._tail_size = min(_TAIL, limit // 4)
        self._room -= self._tail_size
        self._tail = bytearray()
        self._passed = 0
        self._full = False
        self.trouble = ""
        self.last_words = b""

    def write(self, chunk: bytes) -> None:
        """Take the next piece of output."""
        if not self._full:
            head = chunk[: self._room]
            self._put(head)
            self._room -= len(head)
            chunk = chunk[len(head) :]
            if not chunk:
                return
            self._full = True
            self._put(
                f"\ntipcheck: this log may hold {self._limit:,} bytes; "
                "of what follows only the end is kept\n".encode()
            )
        self._passed += len(chunk)
        self._tail += chunk
        if len(self._tail) > 4 * self._tail_size:
            del self._tail[: -self._tail_size or None]

    def note(self, text: str) -> None:
        """Add a line of tipcheck's own, after the output."""
        self._flush_tail()
        self._put(f"tipcheck: {text}\n".encode())

    def close(self) -> str:
        """Write what is left and return a note on what the log lacks, or an empty text."""
        self._flush_tail()
        with contextlib.suppress(OSError):
            os.close(self._fd)
        return self.trouble

    def _flush_tail(self) -> None:
        if not self._full:
            return
        tail = bytes(self._tail[-self._tail_size :]) if self._tail_size else b""
        left_out = self._passed - len(tail)
        if left_out:
            self.trouble = self.trouble or f"{left_out:,} bytes of output are not in the log"
            self._put(f"tipcheck: {left_out:,} bytes are left out here\n".encode())
        self._put(tail)
        if tail and not tail.endswith(b"\n"):
            self._put(b"\n")
        self._tail.clear()
        self._passed = 0

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            self.last_words = (self.last_words + data)[-_LAST_WORDS:]
            if not self.trouble:
                self.trouble = f"the log is incomplete: {error.strerror}"
