"""A run as JUnit XML, which every CI system can show.

One suite per config and mode, one case per step. Whatever is not good is a failure or an error, a
blocked step too: CI systems paint skipped cases green, and a step that never ran proves nothing.

Two schemas are in use, that of Jenkins and the stricter one of Ant. What is written here is valid
by both, which is why sums stand at the suites only, and the end of a log in its failure's text.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tipcheck.report.run_result import WITH_LOG, RunReport, StepReport, is_good
from tipcheck.report.xml_text import clean
from tipcheck.step_runner.outcome import Outcome
from tipcheck.step_runner.reason import clean_lines, tail_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TAIL = 4096


def junit_xml(report: RunReport, root: Path, *, allow_hollow: bool = False) -> str:
    """Return a run as JUnit XML.

    Args:
        report: the run.
        root: the repo's folder, which log paths are relative to.
        allow_hollow: whether hollow steps count as good.
    """
    suites: dict[tuple[str, str], list[StepReport]] = defaultdict(list)
    for step in report.steps:
        suites[step.config, step.mode].append(step)
    top = ET.Element("testsuites")
    for number, ((config, mode), steps) in enumerate(suites.items()):
        suite = ET.SubElement(
            top,
            "testsuite",
            {
                "name": clean(f"{config} {mode}"),
                "timestamp": report.started.partition("+")[0],
                "hostname": "localhost",
                "id": str(number),
                "package": "tipcheck",
                **_sums(steps, allow_hollow),
                "skipped": "0",
            },
        )
        ET.SubElement(suite, "properties")
        for step in steps:
            suite.append(_case(step, root, allow_hollow=allow_hollow))
        notes = "\n".join(f"{step.step}: {step.note}" for step in steps if step.note)
        ET.SubElement(suite, "system-out").text = clean(notes)
        ET.SubElement(suite, "system-err")
    ET.indent(top)
    text: str = ET.tostring(top, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _sums(steps: Sequence[StepReport], allow_hollow: bool) -> dict[str, str]:  # noqa: FBT001
    bad = [step for step in steps if not is_good(step.outcome, allow_hollow=allow_hollow)]
    errors = sum(_is_error(step) for step in bad)
    return {
        "tests": str(len(steps)),
        "failures": str(len(bad) - errors),
        "errors": str(errors),
        "time": f"{sum(step.seconds for step in steps):.3f}",
    }


def _is_error(step: StepReport) -> bool:
    return step.outcome in (None, Outcome.CRASHED, Outcome.TIMED_OUT)


def _case(step: StepReport, root: Path, *, allow_hollow: bool) -> ET.Element:
    case = ET.Element(
        "testcase",
        classname=clean(f"{step.model_name}.{step.mode}.{step.stage}"),
        name=clean(step.step),
        time=f"{step.seconds:.3f}",
    )
    if not is_good(step.outcome, allow_hollow=allow_hollow):
        word = step.outcome.value if step.outcome else "not run"
        problem = ET.SubElement(
            case,
            "error" if _is_error(step) else "failure",
            message=clean(step.reason or word),
            type=word.replace(" ", "-"),
        )
        tail = tail_of(root / step.log, _TAIL) if step.outcome in WITH_LOG else ""
        told = (step.reason, step.hint, step.command, step.note, *clean_lines(tail))
        problem.text = clean("\n".join(filter(None, told)))
    return case
