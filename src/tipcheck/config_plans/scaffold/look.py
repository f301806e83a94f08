"""Looks at a model repo and works out the lines of its configs, each with the reason for it.

Nothing of the repo is executed. What the user says comes first, then what the scripts say about
themselves, then what model repos usually do; what had to be assumed is told as a note.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tipcheck.config_plans.scaffold.roles import EVAL_OPTIONS, ROLES, SCRIPTS, Role
from tipcheck.config_plans.scaffold.scan import Script, scan
from tipcheck.config_plans.words import ShellTextError, split_command
from tipcheck.errors import UsageError

KINDS = ("normal", "amp", "pact")
_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*", re.ASCII)
_PICTURES = (".jpg", ".jpeg", ".png", ".bmp")
_SKIPPED_FOLDERS = frozenset({
    "test_tipc", "tests", "test", "node_modules", "build", "dist", "output", "log", "venv",
    "site-packages", "__pycache__",
})  # fmt: skip
_DEEPEST = 4
DATA = "./lite_data"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user wants to be in the configs; None or empty where the repo decides.

    Attributes:
        model_name: folder of the configs and name in every log path.
        train, eval, export, infer: scripts with their arguments; ``null`` for none.
        python: interpreter.
        gpu_list: entries of line 4.
        epochs, batch_size: a number for the small run, or ``mode=value|mode=value``.
        weight_name: file that the training leaves.
        data_path: folder of the data.
        images: input of the inference.
        configs: which of ``KINDS``; all that the training script allows if empty.
        amp_args, pact_args: what turns on mixed precision and quantisation.
        keys: option by role.
    """

    model_name: str | None = None
    train: str | None = None
    eval: str | None = None
    export: str | None = None
    infer: str | None = None
    python: str | None = None
    gpu_list: str | None = None
    epochs: str | None = None
    batch_size: str | None = None
    weight_name: str | None = None
    data_path: str | None = None
    images: str | None = None
    configs: tuple[str, ...] = ()
    amp_args: str | None = None
    pact_args: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)

    def with_texts(self, texts: Mapping[str, str | None]) -> Wishes:
        """Return the wishes with some of their texts changed, by name."""
        changes: dict[str, Any] = dict(texts)
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Repo:
    """A model repo: what the user wants, and its scripts by stage.

    Attributes:
        root: its folder.
        wishes: with a name and a command for every stage.
        scripts: the script of each command that has one.
        gpus: how many GPUs this machine shows.
        notes: what was found, one line each; those that begin with ``!`` need a look.
    """

    root: Path
    wishes: Wishes
    scripts: Mapping[str, Script]
    gpus: int
    notes: tuple[str, ...]

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return self.wishes.model_name or ""

    @property
    def gpu_list(self) -> str:
        """The entries of line 4."""
        return self.wishes.gpu_list or ("-1", "0", "0|0,1")[min(self.gpus, 2)]

    @property
    def is_cpu_only(self) -> bool:
        """Whether no step may ask for a GPU."""
        return set(self.gpu_list.split("|")) == {"-1"}

    @property
    def data_path(self) -> str:
        """The folder of the data."""
        return self.wishes.data_path or DATA

    def command(self, stage: str) -> str:
        """Return the command of a stage, ``null`` for none."""
        return str(getattr(self.wishes, stage) or "null")


def look(root: Path, wishes: Wishes) -> Repo:
    """Find the scripts of a repo and read them.

    Raises:
        UsageError: there is no such folder or no training script, or a wish cannot be.
    """
    if not root.is_dir():
        raise UsageError("no such folder", where=str(root), hint="give the folder of a model repo")
    _check(wishes)
    given_export = wishes.export is not None
    notes: list[str] = []
    scripts: dict[str, Script] = {}
    commands: dict[str, str] = {}
    for stage in ("train", "export", "infer"):
        command = getattr(wishes, stage) or find_script(root, stage)
        commands[stage] = command or "null"
        path = script_of(command or "null")
        if path:
            scripts[stage] = scan(root, path)
            notes.append(_told(stage, scripts[stage]))
        elif command is None:
            notes.append(f"! no {stage} script found; name it with --{stage}")
    if commands["train"] == "null":
        raise UsageError(
            "no training script found",
            where=str(root),
            hint="name it, as in tipcheck init --train tools/train.py",
        )
    name = wishes.model_name or _name_of(root)
    wishes = replace(
        wishes,
        model_name=name,
        train=commands["train"],
        export=commands["export"],
        infer=commands["infer"],
    )
    repo = Repo(root, wishes, scripts, count_gpus(), ())
    evaluation = wishes.eval or _evaluation(repo)
    notes.append(f"evaluation: {evaluation}")
    export = commands["export"]
    if not given_export and "export" in scripts:
        export += _on_cpu(repo, scripts["export"])
    wishes = replace(wishes, eval=evaluation, export=export)
    return replace(repo, wishes=wishes, notes=tuple(notes))


def script_of(command: str) -> str | None:
    """Return the Python file that a command runs, or None where it names none."""
    return next((word for word in split_command(command) if word.endswith(".py")), None)


def find_script(root: Path, stage: str) -> str | None:
    """Return where a repo keeps the script of a stage, or None."""
    for path in SCRIPTS[stage]:
        if (root / path).is_file():
            return path
    wanted = {"train": ("train",), "export": ("export",), "infer": ("infer", "predict")}
    words = wanted.get(stage, ())
    return next(
        (
            path
            for path in _files(root, (".py",))
            if any(word in path.rsplit("/", 1)[-1].lower() for word in words)
        ),
        None,
    )


def find_picture(root: Path) -> str | None:
    """Return a picture of a repo, one with ``demo`` in its path if there is one."""
    found = [path for path in _files(root, _PICTURES) if "lite_data" not in path]
    return next((path for path in found if "demo" in path.lower()), found[0] if found else None)


def count_gpus(devices: Path = Path("/dev")) -> int:
    """Return how many NVIDIA GPUs this machine shows."""
    try:
        return sum(1 for path in devices.iterdir() if re.fullmatch(r"nvidia\d+", path.name))
    except OSError:
        return 0


def _files(root: Path, suffixes: tuple[str, ...]) -> list[str]:
    """Return the files of a repo with one of some endings, those nearest to its root first."""
    found: list[tuple[int, str]] = []
    for folder, folders, names in os.walk(root):
        here = Path(folder).relative_to(root)
        deep = len(here.parts) >= _DEEPEST
        folders[:] = sorted(
            name
            for name in folders
            if not (deep or name.startswith(".") or name in _SKIPPED_FOLDERS)
        )
        found += [
            (len(here.parts), (here / name).as_posix())
            for name in names
            if name.lower().endswith(suffixes) and _is_plain(name)
        ]
    return [path for _, path in sorted(found)]


def _is_plain(name: str) -> bool:
    return name.isprintable() and not set(name) & set(":|'\"$`\\;&<>()*?[]{}# ")


def _evaluation(repo: Repo) -> str:
    """Return the evaluation: an option of the training script, or a script of its own.

    The layout passes nothing on to it but the weights, so the data and the device are written
    into the command.
    """
    train = repo.scripts.get("train")
    option = train.option(EVAL_OPTIONS) if train else None
    if train is not None and option is not None and not option.takes_value:
        return f"{repo.command('train')} {option.flag}" + _on_data(repo, train)
    path = find_script(repo.root, "eval")
    return "null" if path is None else path + _on_data(repo, scan(repo.root, path))


def _on_data(repo: Repo, script: Script) -> str:
    option = script.option(_role("data-path").names)
    if option is None or not option.takes_value or option.default == repo.data_path:
        return _on_cpu(repo, script)
    return f" {option.flag}={repo.data_path}" + _on_cpu(repo, script)


def _on_cpu(repo: Repo, script: Script) -> str:
    """Return the option that keeps a script from asking for a GPU that is not there."""
    option = script.option(_role("train-device").names)
    if option is None or not repo.is_cpu_only or not option.prefers_gpu:
        return ""
    return f" {option.flag}={option.on(gpu=False)}"


def _role(name: str) -> Role:
    return next(role for role in ROLES if role.name == name)


def _name_of(root: Path) -> str:
    name = re.sub(r"[^\w.+-]+", "_", root.resolve().name, flags=re.ASCII).strip("._+-")
    return name or "model"


def _told(stage: str, script: Script) -> str:
    flags = " ".join(option.flag for option in script.options)
    return f"{stage}: {script.path}, " + (f"options {flags}" if flags else "no options seen")


def _check(wishes: Wishes) -> None:
    """Refuse what the layout cannot hold or a shell would evaluate."""
    if wishes.model_name is not None and not _NAME.fullmatch(wishes.model_name):
        raise UsageError(
            f"{wishes.model_name!r} is no model name",
            hint="use letters, digits and _ . + - only: it becomes a folder",
        )
    unknown = [kind for kind in wishes.configs if kind not in KINDS]
    if unknown:
        raise UsageError(f"no config {unknown[0]!r}", hint=f"choose from {', '.join(KINDS)}")
    roles = {role.name for role in ROLES}
    for role in wishes.keys:
        if role not in roles:
            raise UsageError(
                f"--key {role}: no such role", hint=f"choose from {', '.join(sorted(roles))}"
            )
    texts = {f"--key {role}": text for role, text in wishes.keys.items()}
    for item in fields(wishes):
        value = getattr(wishes, item.name)
        if isinstance(value, str):
            texts["--" + item.name.replace("_", "-")] = value
    for name, text in texts.items():
        _check_text(name, text)


def _check_text(name: str, text: str) -> None:
    if ":" in text or not text.isprintable() or not text.strip():
        raise UsageError(
            f"{name} {text!r} cannot stand in a config",
            hint="the layout cuts a value at a colon and a line at its end; use a relative path",
        )
    try:
        split_command(text if name != "--gpu-list" else text.replace(";", ","))
    except ShellTextError as error:
        raise UsageError(f"{name}: {error}", hint="write it as plain text") from None
