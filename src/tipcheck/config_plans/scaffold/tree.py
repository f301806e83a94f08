"""The tree that ``tipcheck init`` lays down in a model repo, as texts by path.

The shell scripts keep the commands that TIPC documents have always named; all they do is call
tipcheck, so that there is one implementation of the chain. Nothing is written that differs from
a file that is already there unless that was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.errors import ToolError, UsageError

if TYPE_CHECKING:
    from tipcheck.config_plans.scaffold.lines import Configs
    from tipcheck.config_plans.scaffold.look import Repo

FOLDER = "test_tipc"
SCRIPTS = ("common_func.sh", "prepare.sh", "test_train_inference_python.sh")


@dataclass(frozen=True, slots=True)
class Tree:
    """Files to lay down.

    Attributes:
        root: the repo's folder.
        texts: content by path relative to the root.
    """

    root: Path
    texts: Mapping[str, str]

    def new(self) -> list[str]:
        """Return the paths that do not exist yet."""
        return [path for path in self.texts if not (self.root / path).exists()]

    def different(self) -> list[str]:
        """Return the paths that exist with other content."""
        return [
            path
            for path, text in self.texts.items()
            if (self.root / path).exists() and not _holds(self.root / path, text)
        ]

    def write(self, *, force: bool = False) -> list[str]:
        """Write what is new, and with ``force`` what differs; return the paths written.

        Raises:
            UsageError: a file that differs would be overwritten.
            ToolError: a file cannot be written.
        """
        different = self.different()
        if different and not force:
            raise UsageError(
                f"{', '.join(different)} exist(s) with other content",
                where=str(self.root),
                hint="nothing was written; add --force to overwrite, or --dry-run to look first",
            )
        written = [*self.new(), *different]
        for path in written:
            _write(self.root / path, self.texts[path])
        return [path for path in self.texts if path in written]


def make_tree(repo: Repo, configs: Configs) -> Tree:
    """Return the scripts and configs of a repo; its documents are made from them."""
    texts = {
        f"{FOLDER}/configs/{repo.model_name}/{name}": text for name, text in configs.texts.items()
    }
    templates = files("tipcheck.config_plans.scaffold").joinpath("templates")
    for name in SCRIPTS:
        texts[f"{FOLDER}/{name}"] = templates.joinpath(name).read_text("utf-8")
    return Tree(repo.root, texts)


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="\n")
        if path.suffix == ".sh":
            path.chmod(path.stat().st_mode | 0o111)
    except OSError as error:
        raise ToolError(
            f"cannot be written ({error.strerror})",
            where=str(path),
            hint="make room or change its permissions",
        ) from None
