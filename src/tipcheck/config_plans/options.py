"""Which options a script is seen to accept, from its text.

Some lines of a config are read by the chain and never passed on, although its documents say that
they are. Such an option may only come into a command if the script declares it; the script is read
as text and never imported.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def accepts(root: str, command: str, key: str, value: str) -> bool:
    """Return whether the script of a command is seen to take ``key=value``.

    That is: it, or a module of the repo that has its parser, declares the option, as one that takes
    a value, and does not limit it to others. A script that is not to be found accepts nothing.
    """
    script = next((word for word in command.split() if word.endswith(".py")), None)
    if script is None:
        return False
    try:
        changed = Path(root, script).stat().st_mtime_ns
    except (OSError, ValueError):
        return False
    choices = _declared(root, script, changed).get(key)
    return choices is not None and (not choices or value in choices)


def names_option(command: str, key: str) -> bool:
    """Return whether a command gives an option already."""
    return any(word == key or word.startswith(f"{key}=") for word in command.split())


@lru_cache(maxsize=256)
def _declared(root: str, script: str, _changed: int) -> Mapping[str, tuple[str, ...]]:
    """Return the options of a script that take a value, with the values they are limited to."""
    from tipcheck.config_plans.scaffold.scan import scan  # noqa: PLC0415 - only if it is needed

    try:
        options = scan(Path(root), script).options
    except UsageError:
        return {}
    return {
        flag: option.choices
        for option in options
        if option.takes_value
        for flag in (option.flag, *option.also)
    }
