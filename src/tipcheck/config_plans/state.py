"""What is known while a profile's flow runs: variables, where they came from, steps so far."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tipcheck.config_plans.devices import Device
from tipcheck.config_plans.plan import Correction, Step
from tipcheck.config_plans.text import Config
from tipcheck.config_plans.words import ShellTextError, Word, is_plain_text, split_words
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tipcheck.config_plans.template import Template

VISIBLE = "CUDA_VISIBLE_DEVICES"
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
MOST_ROUNDS = 50_000
"""Rounds of all loops; the largest config known makes under a thousand."""

_UNTOUCHED = "<untouched>"


@dataclass(slots=True)
class State:
    """The variables of a flow and the steps it has made.

    Attributes:
        config: the file.
        mode: the mode asked for.
        as_bash: whether defects are kept.
        values: the variables.
        origins: the line of the config each variable came from.
        corrections: what was put right in a variable, for the steps that use it.
        steps: those made so far.
        device: the entry of ``gpu_list`` at work, or None outside that loop.
    """

    config: Config
    mode: str
    as_bash: bool
    values: dict[str, str]
    origins: dict[str, int]
    corrections: dict[str, tuple[Correction, ...]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    device: Device | None = None
    pending: list[Correction] = field(default_factory=list)
    latest: dict[str, str] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    visible: str | None = _UNTOUCHED
    rounds: int = 0

    def count_round(self, line: int | None) -> None:
        """Count one round of a loop.

        Raises:
            UsageError: the lists of the config multiply to more than anybody runs.
        """
        self.rounds += 1
        if self.rounds > MOST_ROUNDS:
            raise UsageError(
                f"the lists of this config make over {MOST_ROUNDS} combinations",
                where=self.config.where(line),
                hint="shorten the list of this line",
            )

    def assign(self, name: str, template: Template) -> None:
        """Set a variable; it keeps the origin and the corrections of what it was made of."""
        self.values[name] = template.fill(self.values)
        origins = [self.origins[used] for used in template.names if used in self.origins]
        if origins:
            self.origins[name] = min(origins)
        if self.corrections:
            self.corrections[name] = self.corrections_of(template)

    def correct(self, name: str, value: str, correction: Correction) -> None:
        """Give a variable another value than bash did, if it differs."""
        if self.values.get(name, "") != value:
            self.values[name] = value
            self.corrections[name] = (*self.corrections.get(name, ()), correction)

    def corrections_of(self, template: Template) -> tuple[Correction, ...]:
        """Return what was put right in the variables of a template, each correction once."""
        if not self.corrections:
            return ()
        found = [
            correction for name in template.names for correction in self.corrections.get(name, ())
        ]
        return tuple(dict.fromkeys(sorted(found, key=_place))) if found else ()

    def argv(
        self, template: Template, bars: str = "blank"
    ) -> tuple[dict[str, str | None], list[Word]]:
        """Return the environment and the arguments of a command.

        Args:
            template: the command.
            bars: what its chain makes of a bar in it; see ``split_words``.

        Raises:
            UsageError: a shell would evaluate a part of it.
        """
        bars = bars if self.as_bash else "text"
        text = template.fill(self.values)
        try:
            words = split_words(text, bars=bars)
        except ShellTextError as error:
            raise UsageError(
                f"a shell would not pass this on as text: {error}",
                where=self.config.where(
                    self.line_of(text, lambda part: not is_plain_text(part, bars=bars))
                ),
                hint="put the text in single quotes, or take it out of the config",
            ) from None
        env: dict[str, str | None] = {}
        while words and (match := ASSIGNMENT.fullmatch(words[0].text)):
            env[match[1]] = match[2]
            words.pop(0)
        if not words:
            raise UsageError(
                "there is no program to start",
                where=self.config.where(self.origins.get("python")),
                hint="line 3 names it, as in python:python3.7",
            )
        return env, words

    def line_of(self, text: str, is_odd: Callable[[str], bool]) -> int | None:
        """Return the line that an odd part of a text came from.

        Variables are made of others, so the shortest that is odd is the one that was read.
        """
        odd = [
            (len(value), self.origins[name])
            for name, value in self.values.items()
            if name in self.origins and value and value in text and is_odd(value)
        ]
        return min(odd, default=(0, None))[1]

    def step_id(self, wanted: str) -> str:
        """Return an id that no step has yet."""
        self.ids[wanted] = self.ids.get(wanted, 0) + 1
        return wanted if self.ids[wanted] == 1 else f"{wanted}#{self.ids[wanted]}"

    @property
    def untouched(self) -> bool:
        """Whether the chain has not yet set or removed the visible devices."""
        return self.visible == _UNTOUCHED


def _place(correction: Correction) -> tuple[int, str]:
    return correction.line or 0, correction.rule
