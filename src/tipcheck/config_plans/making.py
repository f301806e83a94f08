"""The operations of a flow that loop over devices and make the steps of the plan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcheck.config_plans.devices import Device, Habits, by_length, by_meaning
from tipcheck.config_plans.operations import Flow, run_flow
from tipcheck.config_plans.plan import Correction, Step
from tipcheck.config_plans.state import VISIBLE
from tipcheck.config_plans.template import Template
from tipcheck.config_plans.text import shorten
from tipcheck.config_plans.words import ShellTextError, split_list, split_words
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from tipcheck.config_plans.state import State

_PATTERN = re.compile(r"[*?\[]")
_ENTRY = re.compile(r"[\w.,;:\r-]+", re.ASCII)
"""An entry of a GPU list that no shell takes apart but at its semicolon."""


@dataclass(frozen=True, slots=True)
class Devices:
    """Loop over ``gpu_list``, setting gpu, ips, nodes, kind, gpu_env, gpu_index, entry_length."""

    items: Template
    habits: Habits
    flow: Flow

    def run(self, state: State) -> bool:
        """Run the flow once per entry."""
        line = next((state.origins[n] for n in self.items.names if n in state.origins), None)
        for index, entry in enumerate(split_list(self.items.fill(state.values))):
            state.count_round(line)
            if entry == "" or (state.as_bash and _fate(entry)):
                what = _fate(entry) if entry else "is empty"
                raise UsageError(
                    f"entry {index + 1} of the GPU list {what}",
                    where=state.config.where(line),
                    hint="write ids as in 0|0,1, several machines as in IP,IP;0,1",
                )
            state.values["gpu_index"] = str(index)
            state.values["entry_length"] = str(len(entry))
            self._enter(entry, line, state)
            run_flow(self.flow, state)
        state.device = None
        return True

    def _enter(self, entry: str, line: int | None, state: State) -> None:
        device = by_length(entry, self.habits)
        for name, value in _variables(device):
            state.values[name] = value
            state.corrections[name] = state.corrections_of(self.items)
        if state.as_bash:
            state.device = device
            return
        meant = by_meaning(entry, self.habits)
        if meant is None:
            raise UsageError(
                f"{entry!r} is no list of GPU ids",
                where=state.config.where(line),
                hint="write ids as in 0|0,1, several machines as in IP,IP;0,1, or -1 for none",
            )
        detail = f"bash judges {entry!r} by its length and takes it for {_describe(device)}"
        correction = Correction("gpu-list-by-length", f"{detail}; it is {_describe(meant)}", line)
        for name, value in _variables(meant):
            state.correct(name, value, correction)
        state.device = meant


def _variables(device: Device) -> tuple[tuple[str, str], ...]:
    return (
        ("gpu", device.gpu),
        ("ips", device.ips),
        ("nodes", device.nodes),
        ("kind", device.kind),
        ("gpu_env", device.visible),
    )


def _describe(device: Device) -> str:
    if device.kind == "one":
        return f"one process on {device.gpu or 'no device'}"
    return f"{device.nodes} machine(s) with devices {device.gpu}"


def _fate(entry: str) -> str:
    """Return what becomes of an entry in bash that no device can be told from, or nothing."""
    if not _ENTRY.fullmatch(entry):
        return "has characters that bash takes apart"
    if ";" in entry and len(entry) <= 15:
        return "is so short that bash runs a part of it"
    return ""


def _is_one_path(text: str) -> bool:
    """Return whether a redirection takes a text as it is."""
    try:
        words = split_words(text)
    except ShellTextError:
        return False
    return [word.text for word in words] == ([text] if text else []) and not _PATTERN.search(text)


def _is_odd(text: str, folder: str) -> bool:
    return not _is_one_path(text) or ("/" in text and not text.startswith(folder))


@dataclass(frozen=True, slots=True)
class Visible:
    """Set or remove CUDA_VISIBLE_DEVICES for what follows; empty text changes nothing.

    But for a list of GPUs that bash takes for addresses: some chains then set it to nothing.
    """

    value: Template | None

    def run(self, state: State) -> bool:
        """Change the variable."""
        if self.value is None:
            state.visible = None
        elif text := self.value.fill(state.values).strip():
            state.visible = text
        elif state.as_bash and state.device and state.device.emptied:
            state.visible = ""
        return True


@dataclass(frozen=True, slots=True)
class MakeStep:
    """Add one step to the plan."""

    stage: str
    command: Template
    log: Template
    id: Template
    cwd: Template
    needs: tuple[str, ...]
    after: Template
    on: str
    bars: str

    def run(self, state: State) -> bool:
        """Put the command together."""
        env, argv = state.argv(self.command, self.bars)
        corrections = [*state.pending, *state.corrections_of(self.command)]
        if not state.as_bash and any("|" in word.text for word in argv):
            detail = "bash makes a blank of every | in a command; it is a character like others"
            corrections.append(Correction("bar-turned-blank", detail))
        state.pending.clear()
        self._devices(state, env, corrections)
        log = self.log.fill(state.values)
        if state.as_bash:
            self._check_log(state, log)
        needs = [state.latest[stage] for stage in self.needs if stage in state.latest]
        if (after := self.after.fill(state.values)) in state.ids:
            needs.append(after)
        step = Step(
            id=state.step_id(self.id.fill(state.values)),
            stage=self.stage,
            argv=tuple(word.text for word in argv),
            log=log,
            env=env,
            cwd=self.cwd.fill(state.values),
            needs=tuple(needs),
            gpus=self._occupied(state, env.get(VISIBLE)),
            corrections=tuple(dict.fromkeys(corrections)),
            patterns=tuple(index for index, word in enumerate(argv) if word.pattern),
        )
        state.steps.append(step)
        state.latest[self.stage] = step.id
        return True

    def _check_log(self, state: State, log: str) -> None:
        """Refuse a log that bash cannot redirect to, or whose name it takes apart.

        It would not start the command at all, or give it the rest of the name as an argument. Few
        chains redirect their trainings; of those only the folder is certain.
        """
        folder = state.values.get("logs", ".")
        name = "" if self.stage == "train" else log.removeprefix(f"{folder}/")
        if _is_one_path(folder) and _is_one_path(name) and "/" not in name:
            return
        raise UsageError(
            f"bash cannot write to the log {shorten(log)}, and does not start what belongs to it",
            where=state.config.where(state.line_of(log, lambda part: _is_odd(part, folder))),
            hint="take blanks, quotes, slashes and patterns out of the names and lists of the line",
        )

    def _devices(
        self, state: State, env: dict[str, str | None], corrections: list[Correction]
    ) -> None:
        bash: str | None = None if state.untouched else state.visible
        if state.as_bash or state.device is None:
            if not state.untouched:
                env[VISIBLE] = bash
            return
        if self.stage == "train":
            right = state.device.gpu if state.device.kind == "one" else None
            right = None if not state.device.ids else right
        else:
            right = state.device.visible or None
        if right is None and state.untouched:
            return
        env[VISIBLE] = right
        if right != bash:
            line = state.origins.get("gpu_list")
            if right is None:
                detail = f"bash leaves {VISIBLE}={bash} from an earlier entry; it is removed"
                corrections.append(Correction("leaking-cuda-visible-devices", detail, line))
            else:
                seen = f"{VISIBLE}={bash}" if bash else "every GPU"
                detail = f"bash shows this step {seen}; it sees GPU {right}, as the entry says"
                corrections.append(Correction("gpu-not-pinned", detail, line))

    def _occupied(self, state: State, visible: str | None) -> tuple[str, ...]:
        if self.on == "none":
            return ()
        if self.stage == "train" and state.device:
            return state.device.ids
        if visible:
            return tuple(visible.split(","))
        return ("0",) if state.device is None else state.device.ids[:1]
