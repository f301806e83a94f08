"""Failed steps as workflow commands, which GitHub shows as annotations on the config file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tipcheck.report.run_result import RunReport, StepReport, is_good
from tipcheck.step_runner.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator


def github_annotations(report: RunReport, *, allow_hollow: bool = False) -> Iterator[str]:
    """Yield one line for each step that is not good; blocked ones follow from another.

    Args:
        report: the run.
        allow_hollow: whether hollow steps count as good; they are warnings then.
    """
    for step in report.steps:
        if step.outcome is Outcome.HOLLOW and allow_hollow:
            yield _annotation("warning", step)
        elif step.outcome is not Outcome.BLOCKED and not is_good(step.outcome, allow_hollow=False):
            yield _annotation("error", step)


def _annotation(level: str, step: StepReport) -> str:
    word = step.outcome.value if step.outcome else "not run"
    title = _property(f"{step.model_name}: {step.stage} {word}")
    lines = [f"{step.step}: {step.reason or word}", step.hint, f"log: {step.log}" * bool(step.log)]
    message = _data("\n".join(line for line in lines if line))
    return f"::{level} file={_property(step.config)},title={title}::{message}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
