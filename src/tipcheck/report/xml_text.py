"""Text that XML can hold."""

from __future__ import annotations

import re

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Return text with every character that XML has no place for replaced."""
    return _NOT_IN_XML.sub("\ufffd", text)
