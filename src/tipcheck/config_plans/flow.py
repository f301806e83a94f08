"""Compiles the flow of a profile from its JSON form.

A flow says in which order the stages run, over which lists they loop, and what is skipped. An
operation is a JSON object; the word it starts with says which one it is, ``use`` puts in a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.config_plans.devices import Habits
from tipcheck.config_plans.making import Devices, MakeStep, Visible
from tipcheck.config_plans.operations import (
    Check,
    Count,
    Each,
    First,
    Fix,
    Flow,
    Folder,
    If,
    Item,
    Operation,
    Refuse,
    Replace,
    Set,
    Skip,
    Unused,
)
from tipcheck.config_plans.template import (
    Comparison,
    Condition,
    Template,
    TemplateError,
    compile_condition,
    compile_template,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def compile_flow(source: Sequence[Mapping[str, Any]], blocks: Mapping[str, Any]) -> Flow:
    """Compile a flow from its form in a profile; ``use`` puts in a named block.

    Raises:
        TemplateError: an operation is none that is known.
    """
    return tuple(_compile(item, blocks) for item in source)


def _compile(item: Mapping[str, Any], blocks: Mapping[str, Any]) -> Operation:
    for word, build in _BUILDERS.items():
        if word in item:
            return build(item, blocks)
    raise TemplateError(f"not an operation: {sorted(item)}")


def _test(source: Any) -> Check:  # noqa: ANN401 - JSON
    condition = compile_condition(source)
    return Check(condition, frozenset(_names(condition)))


def _names(condition: Condition) -> set[str]:
    if isinstance(condition, Comparison):
        return set(condition.left.names | condition.right.names)
    inner = getattr(condition, "conditions", None) or (getattr(condition, "condition"),)  # noqa: B009
    return {name for part in inner for name in _names(part)}


def _assignments(source: Mapping[str, str]) -> tuple[tuple[str, Template], ...]:
    return tuple((name, compile_template(text)) for name, text in source.items())


def _build_fix(item: Mapping[str, Any], _blocks: Mapping[str, Any]) -> Operation:
    test = _test(item["when"]) if "when" in item else None
    about = item.get("about", "")
    return Fix(item["fix"], item["detail"], about, _assignments(item["set"]), test)


def _build_first(item: Mapping[str, Any], blocks: Mapping[str, Any]) -> Operation:
    return First(
        tuple(
            (_test(case["when"]) if "when" in case else None, compile_flow(case["do"], blocks))
            for case in item["first"]
        )
    )


def _build_step(item: Mapping[str, Any], _blocks: Mapping[str, Any]) -> Operation:
    return MakeStep(
        stage=item["step"],
        command=compile_template(item["run"]),
        log=compile_template(item["log"]),
        id=compile_template(item["id"]),
        cwd=compile_template(item.get("cwd", ".")),
        needs=tuple(item.get("needs", ())),
        after=compile_template(item.get("after", "")),
        on=item.get("on", "visible"),
        bars=item.get("bars", "blank"),
    )


def _build_use(item: Mapping[str, Any], blocks: Mapping[str, Any]) -> Operation:
    if item["use"] not in blocks:
        raise TemplateError(f"no block {item['use']!r}")
    return First(((None, compile_flow(blocks[item["use"]], blocks)),))


_BUILDERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Operation]] = {
    "fix": _build_fix,
    "set": lambda item, _: Set(_assignments(item["set"])),
    "if": lambda item, blocks: If(
        _test(item["if"]),
        compile_flow(item["then"], blocks),
        compile_flow(item.get("else", ()), blocks),
    ),
    "first": _build_first,
    "each": lambda item, blocks: Each(
        item["each"],
        compile_template(item["in"]),
        item.get("index"),
        compile_flow(item["do"], blocks),
    ),
    "item": lambda item, _: Item(
        item["item"], compile_template(item["of"]), compile_template(item["at"])
    ),
    "folder": lambda item, _: Folder(item["folder"], compile_template(item["of"])),
    "replace": lambda item, _: Replace(
        item["replace"], compile_template(item["of"]), item["text"], item["by"]
    ),
    "unused": lambda item, _: Unused(
        tuple(item["unused"]), compile_template(item["of"]), item["into"]
    ),
    "count": lambda item, _: Count(item["count"]),
    "skip": lambda item, _: Skip(_test(item["skip"])),
    "refuse": lambda item, _: Refuse(_test(item["refuse"]), item["because"], item.get("about", "")),
    "devices": lambda item, blocks: Devices(
        compile_template(item["devices"]),
        Habits(**blocks.get("habits", {})),
        compile_flow(item["do"], blocks),
    ),
    "visible": lambda item, _: Visible(
        None if item["visible"] is None else compile_template(item["visible"])
    ),
    "step": _build_step,
    "use": _build_use,
}
