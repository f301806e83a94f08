"""Verified exports as JUnit XML: a suite for each command, a case for each export.

A command that exported nothing has one case too, which fails: CI systems show an empty suite green.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tipcheck.compare.verdict import Status
from tipcheck.errors import ToolError
from tipcheck.report.xml_text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tipcheck.stage_ladder.exports import ExportsReport, ExportVerdict


def write_junit(reports: Sequence[ExportsReport], path: Path) -> None:
    """Write the reports of one or many commands.

    Raises:
        ToolError: the file cannot be written.
    """
    top = ET.Element("testsuites")
    for number, report in enumerate(reports):
        top.append(_suite(report, number))
    ET.indent(top)
    text: str = ET.tostring(top, encoding="unicode")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n', encoding="utf-8")
    except OSError as error:
        raise ToolError(f"cannot be written: {error.strerror}", where=str(path)) from None


def _suite(report: ExportsReport, number: int) -> ET.Element:
    name = report.config or report.command
    suite = ET.Element("testsuite", name=clean(name), id=str(number), package="tipcheck")
    cases = [_case(one, name) for one in report.exports]
    if not report.good and not any(list(case) for case in cases):
        cases.append(_failed("export", name, "failure", report.sentence, report.sentence))
    for case in cases:
        suite.append(case)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    suite.set("errors", str(sum(case.find("error") is not None for case in cases)))
    suite.set("time", f"{report.seconds:.3f}")
    return suite


def _case(one: ExportVerdict, config: str) -> ET.Element:
    if one.status is Status.PASS:
        return ET.Element(
            "testcase", classname=clean(config), name=clean(one.name), time=f"{one.seconds:.3f}"
        )
    kind = "error" if one.status is Status.CRASH else "failure"
    told = "\n".join([one.sentence, *one.notes, *one.last_lines])
    return _failed(one.name, config, kind, f"{one.status.value}: {one.sentence}", told)


def _failed(name: str, config: str, kind: str, message: str, told: str) -> ET.Element:
    case = ET.Element("testcase", classname=clean(config), name=clean(name), time="0.000")
    problem = ET.SubElement(case, kind, message=clean(message), type="verify")
    problem.text = clean(told)
    return case
