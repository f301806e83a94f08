"""The operations that a profile's flow is made of: variables, tests and loops.

Each is one small frozen class that changes the state and says whether the innermost loop goes on.
The operations that deal with devices and make steps stand in ``making``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tipcheck.config_plans.options import accepts, names_option
from tipcheck.config_plans.plan import Correction
from tipcheck.config_plans.template import Condition, Template
from tipcheck.config_plans.text import for_mode, modes_of, option
from tipcheck.config_plans.words import BracketError, split_list
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from tipcheck.config_plans.state import State


class Operation(Protocol):
    """One operation of a flow."""

    def run(self, state: State) -> bool:
        """Do it; False means that the innermost loop goes on with its next item."""
        ...


Flow = tuple[Operation, ...]


def run_flow(flow: Flow, state: State) -> bool:
    """Run operations in order until one of them skips."""
    return all(operation.run(state) for operation in flow)


@dataclass(frozen=True, slots=True)
class Check:
    """A condition of a flow, with the errors that bash would print and go on from."""

    condition: Condition
    names: frozenset[str]

    def holds(self, state: State) -> bool:
        """Return whether it holds.

        Raises:
            UsageError: bash would stumble over an empty value here and skip a part in silence.
        """
        try:
            held = self.condition.holds(state.values, strict=not state.as_bash)
        except BracketError as error:
            raise self._refusal(state, error) from None
        if not state.as_bash:
            for name in sorted(self.names):
                state.pending.extend(state.corrections.get(name, ()))
        return held

    def _refusal(self, state: State, error: BracketError) -> UsageError:
        empty = [name for name in sorted(self.names) if not state.values.get(name, "")]
        number = min((state.origins[name] for name in empty if name in state.origins), default=None)
        return UsageError(
            f"line {number} is missing or has no value; the bash would print an error for {error} "
            "and silently skip what depends on it",
            where=state.config.where(number),
            hint="run 'tipcheck lint' on the file: a line above it may be missing or inserted",
        )


@dataclass(frozen=True, slots=True)
class Set:
    """Give variables values."""

    values: tuple[tuple[str, Template], ...]

    def run(self, state: State) -> bool:
        """Assign in order."""
        for name, template in self.values:
            state.assign(name, template)
        return True


@dataclass(frozen=True, slots=True)
class Fix:
    """Put a defect right, in the corrected reading only."""

    rule: str
    detail: str
    about: str
    values: tuple[tuple[str, Template], ...]
    test: Check | None

    def run(self, state: State) -> bool:
        """Set the right values, and note the rule where they differ."""
        if state.as_bash or (self.test and not self.test.holds(state)):
            return True
        for name, template in self.values:
            right = template.fill(state.values)
            correction = Correction(self.rule, self.detail, state.origins.get(self.about))
            state.correct(name, right, correction)
        return True


@dataclass(frozen=True, slots=True)
class If:
    """Choose between two flows."""

    test: Check
    then: Flow
    otherwise: Flow

    def run(self, state: State) -> bool:
        """Run one of them."""
        return run_flow(self.then if self.test.holds(state) else self.otherwise, state)


@dataclass(frozen=True, slots=True)
class First:
    """Run the flow of the first case that holds."""

    cases: tuple[tuple[Check | None, Flow], ...]

    def run(self, state: State) -> bool:
        """Try the cases in order."""
        for test, flow in self.cases:
            if test is None or test.holds(state):
                return run_flow(flow, state)
        return True


@dataclass(frozen=True, slots=True)
class Each:
    """Loop over the items of a list."""

    name: str
    items: Template
    index: str | None
    flow: Flow

    def run(self, state: State) -> bool:
        """Run the flow once per item."""
        corrections = state.corrections_of(self.items)
        origins = [state.origins[name] for name in self.items.names if name in state.origins]
        for index, item in enumerate(split_list(self.items.fill(state.values))):
            state.count_round(min(origins, default=None))
            state.values[self.name] = item
            state.corrections[self.name] = corrections
            if origins:
                state.origins[self.name] = min(origins)
            if self.index:
                state.values[self.index] = str(index)
            run_flow(self.flow, state)
        return True


@dataclass(frozen=True, slots=True)
class Item:
    """Take one item of a list; past its end there is nothing."""

    name: str
    items: Template
    at: Template

    def run(self, state: State) -> bool:
        """Set the variable to the item."""
        state.assign(self.name, self.items)
        items = split_list(state.values[self.name])
        at = int(self.at.fill(state.values) or 0)
        state.values[self.name] = items[at] if at < len(items) else ""
        return True


@dataclass(frozen=True, slots=True)
class Folder:
    """Take the folder of a path, as ``dirname`` does."""

    name: str
    path: Template

    def run(self, state: State) -> bool:
        """Set the variable to the folder."""
        state.assign(self.name, self.path)
        path = state.values[self.name]
        head, slash, _ = path.rstrip("/").rpartition("/")
        state.values[self.name] = head.rstrip("/") or ("/" if slash or path[:1] == "/" else ".")
        return True


@dataclass(frozen=True, slots=True)
class Replace:
    """Put another text in the place of the first that matches."""

    name: str
    source: Template
    text: str
    by: str

    def run(self, state: State) -> bool:
        """Set the variable to the changed text."""
        state.assign(self.name, self.source)
        state.values[self.name] = state.values[self.name].replace(self.text, self.by, 1)
        return True


@dataclass(frozen=True, slots=True)
class Unused:
    """Options of lines that the chain reads but never passes on.

    In the corrected reading an option comes into the command if its script is seen to know it.
    """

    lines: tuple[str, ...]
    command: Template
    into: str

    def run(self, state: State) -> bool:
        """Set the variable to the options that the script accepts."""
        state.values[self.into] = ""
        if state.as_bash:
            return True
        command = self.command.fill(state.values)
        root = state.values["root"]
        for line in self.lines:
            key = state.values[f"{line}.key"]
            value = _for_this_mode(state.values[line], state.values["mode"])
            text = option(key, value)
            wanted = key.startswith("-") and text != " " and not names_option(command, key)
            if wanted and accepts(root, command, key, value):
                detail = f"bash never passes {text} on, and the script knows {key}"
                correction = Correction("line-not-passed-on", detail, state.origins.get(line))
                state.correct(self.into, f"{state.values[self.into]} {text}".strip(), correction)
        return True


def _for_this_mode(value: str, mode: str) -> str:
    """Return the value for a mode where it is written by mode, else the first of its list."""
    if any(name.endswith("_infer") for name in modes_of(value)):
        return for_mode(value, mode)
    return value.split("|", maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class Count:
    """Add one to a variable."""

    name: str

    def run(self, state: State) -> bool:
        """Count."""
        state.values[self.name] = str(int(state.values[self.name]) + 1)
        return True


@dataclass(frozen=True, slots=True)
class Skip:
    """Go on with the next item of the innermost loop."""

    test: Check

    def run(self, state: State) -> bool:
        """Return False where the condition holds."""
        return not self.test.holds(state)


@dataclass(frozen=True, slots=True)
class Refuse:
    """Give up with a reason: the profile knows that it cannot tell what would run."""

    test: Check
    reason: str
    about: str

    def run(self, state: State) -> bool:
        """Raise where the condition holds."""
        if self.test.holds(state):
            number = state.origins.get(self.about)
            raise UsageError(self.reason, where=state.config.where(number))
        return True
