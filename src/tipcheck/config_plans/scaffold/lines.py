"""Writes the 32 lines of a config for a repo that was looked at.

A line whose option the script does not have becomes ``null:null`` where the chain can do without;
where it cannot, the usual name is written and a note says what the script lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcheck.config_plans.options import names_option
from tipcheck.config_plans.scaffold.look import KINDS, find_picture
from tipcheck.config_plans.scaffold.roles import (
    AMP_OPTIONS,
    PACT_OPTIONS,
    ROLES,
    SETTINGS_OPTIONS,
)
from tipcheck.config_plans.scaffold.scan import Option
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from tipcheck.config_plans.scaffold.look import Repo
    from tipcheck.config_plans.scaffold.roles import Role
    from tipcheck.config_plans.scaffold.scan import Script

FILES = {
    "normal": "train_infer_python.txt",
    "amp": "train_amp_infer_python.txt",
    "pact": "train_pact_infer_python.txt",
}
_BY_NAME = {role.name: role for role in ROLES}
_SMALL_EPOCHS, _ALL_EPOCHS = 5, 90
_SMALL_BATCH, _BIG_BATCH = 4, 128
_NULL = "null:null"


@dataclass(frozen=True, slots=True)
class Configs:
    """The configs of a repo.

    Attributes:
        texts: by file name.
        notes: what was chosen and why; those that begin with ``!`` need a look.
        data_path: the folder that the data has to be in, or ``null``.
    """

    texts: dict[str, str]
    notes: tuple[str, ...]
    data_path: str


def write_configs(repo: Repo) -> Configs:
    """Return the configs for a repo.

    Raises:
        UsageError: a config was asked for that the training script has no option for.
    """
    writer = _Writer(repo)
    lines = writer.lines()
    texts = {}
    for kind in KINDS:
        changes = writer.changes(kind)
        if changes is not None:
            texts[FILES[kind]] = "\n".join((lines | changes)[n] for n in range(1, 33)) + "\n"
    return Configs(texts, tuple(writer.notes), lines[11].partition(":")[2])


class _Writer:
    """Works out lines and collects notes on the way."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._wishes = repo.wishes
        self.notes: list[str] = []

    def lines(self) -> dict[int, str]:
        """Return the 32 lines of the normal config."""
        wishes, model = self._wishes, self._repo.model_name
        gpus = self._gpus()
        weight = self._weight()
        command = self._repo.command
        exported = f"./output/{model}_infer/"
        pretrained = f"./pretrain_models/{model}_pretrained.pdparams"
        lines = {
            1: "train_params".center(64, "="),
            2: f"model_name:{model}",
            3: f"python:{wishes.python or 'python3'}",
            4: f"gpu_list:{gpus}",
            5: self._train_device(gpus),
            6: self._per_mode("epochs", wishes.epochs, _SMALL_EPOCHS, _ALL_EPOCHS),
            7: self._key("output", "./output/"),
            8: self._per_mode("batch-size", wishes.batch_size, _SMALL_BATCH, _BIG_BATCH),
            9: self._key("pretrained", "null"),
            10: f"train_model_name:{weight}",
            11: self._data(),
            12: "##",
            13: "trainer:norm_train",
            14: f"norm_train:{command('train')}",
            15: "##",
            16: "eval_params".center(64, "="),
            17: f"eval:{command('eval')}",
            18: "##",
            19: "infer_params".center(64, "="),
            20: self._key("save-inference", exported),
            21: self._key("export-weights", ""),
            22: f"norm_export:{command('export')}",
            23: "##",
            24: f"train_model:{pretrained}",
            25: f"infer_export:{command('export')}",
            26: "##",
            27: f"inference:{command('infer')}",
            28: self._device(),
            29: self._key("infer-batch-size", "1"),
            30: self._key("model-dir", exported),
            31: self._images(),
            32: self._key("benchmark", "True"),
        }
        keys = {line.partition(":")[0] for line in lines.values()}
        for stage, script in self._repo.scripts.items():
            self._tell_required(stage, script, keys)
        return lines

    def _tell_required(self, stage: str, script: Script, keys: set[str]) -> None:
        """Note the options without which a script does not start, and which no line gives it."""
        command = self._repo.command(stage)
        for option in script.options:
            forms = (option.flag, *option.also)
            given = any(form in keys or names_option(command, form) for form in forms)
            if option.required and not given:
                self.notes.append(
                    f"! {script.path} does not start without {option.flag}, which no line gives; "
                    f"write it into the command: --{stage} '{command} {option.flag}=…'"
                )
        settings = script.option(SETTINGS_OPTIONS)
        if settings is not None:
            role = next(role.name for role in ROLES if role.stage == stage)
            self.notes.append(
                f"{script.path} takes settings by {settings.flag}; a line names one of them "
                f"as in --key {role}='{settings.flag} NAME'"
            )

    def changes(self, kind: str) -> dict[int, str] | None:
        """Return the lines in which a config differs from the normal one, None to leave it out."""
        wanted = self._wishes.configs
        if wanted and kind not in wanted:
            return None
        if kind == "normal":
            return {}
        arguments = self._switch(kind)
        if arguments is None:
            if wanted:
                raise UsageError(
                    f"the training script has no option seen to turn on {kind}",
                    where=self._repo.command("train"),
                    hint=f"give what does, as in --{kind}-args='--use_{kind}=True'",
                )
            self.notes.append(
                f"! {FILES[kind]} left out: the training script has no option seen to turn it on; "
                f"--{kind}-args gives it"
            )
            return None
        trainer = f"{kind}_train"
        lines = {
            13: f"trainer:{trainer}",
            14: f"{trainer}:{self._repo.command('train')} {arguments}",
        }
        export = self._repo.scripts.get("export")
        same = export.option(PACT_OPTIONS) if export and kind == "pact" else None
        if same is not None and not same.takes_value:
            command = f"{self._repo.command('export')} {same.flag}"
            lines |= {22: f"norm_export:{command}", 25: f"infer_export:{command}"}
        self.notes.append(f"{kind}: {arguments}")
        return lines

    def _switch(self, kind: str) -> str | None:
        """Return what turns on mixed precision or quantisation."""
        given = self._wishes.amp_args if kind == "amp" else self._wishes.pact_args
        if given is not None:
            return given
        script = self._repo.scripts.get("train")
        names = AMP_OPTIONS if kind == "amp" else PACT_OPTIONS
        option = script.option(names) if script else None
        if option is None:
            return None
        if not option.takes_value:
            return option.flag
        return f"{option.flag}={'O2' if option.plain == 'amp-level' else 'True'}"

    def _option(self, role: Role) -> Option | None:
        script = self._repo.scripts.get(role.stage)
        return script.option(role.names) if script else None

    def _flag(self, name: str) -> str | None:
        """Return how the option of a role is written; None where there is none and none needed."""
        role = _BY_NAME[name]
        if role.name in self._wishes.keys:
            return self._wishes.keys[role.name]
        script = self._repo.scripts.get(role.stage)
        option = self._option(role)
        if option is not None and option.takes_value:
            return option.flag
        if script is None or not script.options:  # nothing is known: what most repos call it
            return None if role.name in ("train-device", "data-path") else role.usual
        place = f"line {role.line} ({role.about})"
        lacks = (
            f"{option.flag} of {script.path} takes no value, so it cannot stand in {place}"
            if option
            else f"{script.path} has no option seen for {place}"
        )
        change = f"--key {role.name}=OPTION changes it"
        if role.needed:
            self.notes.append(f"! {lacks}; the chain needs one, {role.usual} is written, {change}")
            return role.usual
        self.notes.append(f"{lacks}; null is written, {change}")
        return None

    def _key(self, name: str, value: str) -> str:
        flag = self._flag(name)
        return _NULL if flag is None else f"{flag}:{value}"

    def _per_mode(self, name: str, wish: str | None, small: int, large: int) -> str:
        flag = self._flag(name)
        if flag is None:
            return _NULL
        if wish is not None and "=" in wish:
            return f"{flag}:{wish}"
        option = self._option(_BY_NAME[name])
        if option and isinstance(option.default, int) and option.default > 0:
            large = option.default
        lite = wish if wish is not None else str(min(small, large))
        return f"{flag}:lite_train_lite_infer={lite}|whole_train_whole_infer={large}"

    def _gpus(self) -> str:
        entries = self._repo.gpu_list
        if self._wishes.gpu_list is None:
            seen = self._repo.gpus
            told = f"{seen} GPU(s) seen" if seen else "no GPU seen, so the chain runs on the CPU"
            self.notes.append(f"{told}: gpu_list:{entries}; --gpu-list changes it")
        return entries

    def _word(self, name: str, *, gpu: bool) -> str:
        """Return what a device option takes."""
        option = self._option(_BY_NAME[name])
        flag = self._wishes.keys.get(name)
        if flag is not None or option is None:
            option = Option(flag or _BY_NAME[name].usual)
        return option.on(gpu=gpu)

    def _train_device(self, gpus: str) -> str:
        flag = self._flag("train-device")
        if flag is None:
            return _NULL
        words = [self._word("train-device", gpu=entry != "-1") for entry in gpus.split("|")]
        return f"{flag}:{'|'.join(words)}"

    def _device(self) -> str:
        kinds = (False,) if self._repo.is_cpu_only else (True, False)
        words = [self._word("device", gpu=on_gpu) for on_gpu in kinds]
        return self._key("device", "|".join(words))

    def _weight(self) -> str:
        if self._wishes.weight_name is not None:
            return self._wishes.weight_name
        script = self._repo.scripts.get("train")
        names = script.weights if script else ()
        for word in ("latest", "last", "final", "best", ""):
            found = next((name for name in names if word in name.lower()), None)
            if found:
                self.notes.append(f"weights that the training leaves: {found}")
                return found
        self.notes.append(
            "! the name of the weights that the training leaves is not seen; latest.pdparams is "
            "written, --weight-name changes it"
        )
        return "latest.pdparams"

    def _data(self) -> str:
        flag = self._flag("data-path")
        if flag is None:
            return _NULL
        return f"{flag}:{self._repo.data_path}"

    def _images(self) -> str:
        flag = self._flag("images")
        if flag is None:
            return _NULL
        option = self._option(_BY_NAME["images"])
        default = option.default if option else None
        if self._wishes.images is not None:
            return f"{flag}:{self._wishes.images}"
        if isinstance(default, str) and default and (self._repo.root / default).exists():
            return f"{flag}:{default}"
        found = find_picture(self._repo.root)
        if found is None:
            self.notes.append(
                "! no picture found to infer; the configs name ./images/demo.jpg, --images another"
            )
        return f"{flag}:./{found or 'images/demo.jpg'}"
