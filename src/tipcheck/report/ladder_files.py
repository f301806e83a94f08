"""A ladder as files: JSON with its schema, and JUnit XML with one case per rung.

Rungs that cannot run here are skipped cases: they prove nothing, and fail nothing unless they were
asked for, which the case of the verdict then says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tipcheck import wire
from tipcheck.compare.verdict import Status
from tipcheck.errors import ToolError
from tipcheck.report.xml_text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tipcheck.stage_ladder.rung import LadderResult, Rung

_ERRORS = (Status.CRASH,)


def write_ladder_files(
    results: Sequence[LadderResult],
    *,
    json: Path | None = None,
    junit: Path | None = None,
    allow: frozenset[str] = frozenset(),
) -> None:
    """Write what was asked for; JSON holds the first result.

    Raises:
        ToolError: a file cannot be written.
    """
    try:
        if json is not None:
            json.parent.mkdir(parents=True, exist_ok=True)
            json.write_text(wire.dumps(results[0]) + "\n", encoding="utf-8")
        if junit is not None:
            junit.parent.mkdir(parents=True, exist_ok=True)
            junit.write_text(ladder_junit(results, allow=allow), encoding="utf-8")
    except OSError as error:
        raise ToolError(
            f"cannot write ({error.strerror})",
            where=str(error.filename or junit or json),
            hint="make room or choose another place",
        ) from None


def ladder_junit(results: Sequence[LadderResult], allow: frozenset[str] = frozenset()) -> str:
    """Return ladders as JUnit XML, one suite each."""
    top = ET.Element("testsuites")
    for result in results:
        cases = [_case(result.model, rung, allow) for rung in result.rungs]
        cases.append(_verdict(result, allow))
        suite = ET.SubElement(
            top,
            "testsuite",
            {
                "name": clean(result.model),
                "tests": str(len(cases)),
                "failures": str(sum(case.find("failure") is not None for case in cases)),
                "errors": str(sum(case.find("error") is not None for case in cases)),
                "skipped": str(sum(case.find("skipped") is not None for case in cases)),
            },
        )
        suite.extend(cases)
    ET.indent(top)
    text: str = ET.tostring(top, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(model: str, rung: Rung, allow: frozenset[str]) -> ET.Element:
    case = ET.Element(
        "testcase",
        classname=clean(model),
        name=rung.stage,
        time=f"{sum(rung.seconds.values()):.3f}",
    )
    if rung.status is Status.UNSUPPORTED:
        ET.SubElement(case, "skipped", message=clean(rung.reason))
    elif _is_bad(rung.status, allow):
        kind = "error" if rung.status in _ERRORS else "failure"
        problem = ET.SubElement(case, kind, message=clean(rung.reason), type=rung.status.value)
        problem.text = clean("\n".join([rung.reason, *rung.last_lines, *rung.notes]))
    return case


def _verdict(result: LadderResult, allow: frozenset[str]) -> ET.Element:
    case = ET.Element("testcase", classname=clean(result.model), name="verdict", time="0.000")
    if _is_bad(result.status, allow):
        message = clean(result.sentence)
        ET.SubElement(case, "failure", message=message, type=result.status.value).text = message
    return case


def _is_bad(status: Status, allow: frozenset[str]) -> bool:
    if status is Status.SUSPECT and "suspect" in allow:
        return False
    return status is not Status.PASS
