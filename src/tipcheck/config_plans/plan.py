"""What a config becomes: the steps to run, in order, with everything needed to run them.

The contract between ``config_plans``, which writes plans, and ``step_runner``, which runs them. A
plan holds no shell text: ``argv`` is passed to the program as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Correction:
    """One defect of the original bash that was put right in a step, by a named rule.

    Attributes:
        rule: the documented name of the rule, such as ``epochs-lost``.
        line: line of the config it concerns, counted from 1; None when it concerns no single line.
        detail: what the bash would have done, and what is done instead.
    """

    rule: str
    detail: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a chain.

    Attributes:
        id: unique within the plan and stable between two plannings of the same config.
        stage: ``train``, ``eval``, ``export``, ``infer`` or another word of the profile.
        argv: program and arguments, exactly as the process receives them.
        env: variables set for this step; a value of None means the variable is removed.
        cwd: working directory, relative to the repo's root.
        log: file the output goes to, relative to the repo's root.
        needs: ids of the steps that have to pass before this one starts.
        gpus: GPU ids this step occupies; steps that share one never run side by side.
        corrections: the rules that changed this step from what the bash would have started.
        patterns: positions in ``argv`` that hold a file pattern, such as ``output/*/latest``; it
            is replaced by the files it matches when the step starts, and stays if there is none.
    """

    id: str
    stage: str
    argv: tuple[str, ...]
    log: str
    env: Mapping[str, str | None] = field(default_factory=dict)
    cwd: str = "."
    needs: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    patterns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of one config in one mode.

    Attributes:
        config: path of the config file.
        mode: such as ``lite_train_lite_infer``.
        profile: name of the profile that read the config.
        model_name: the model the config is about.
        steps: in the order in which the bash would start them.
    """

    schema: ClassVar[str] = "tipcheck.plan/1"

    config: str
    mode: str
    profile: str
    model_name: str
    steps: tuple[Step, ...]
