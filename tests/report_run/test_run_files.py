from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.report_run.conftest import Make, result, step
from tipcheck import wire
from tipcheck.report.run_files import write_files
from tipcheck.report.run_github import github_annotations
from tipcheck.report.run_junit import junit_xml
from tipcheck.report.run_result import RunReport
from tipcheck.report.run_status import FILE_NAME, FORMATS, status_line, write_status
from tipcheck.step_runner.outcome import Outcome

# The schema of Ant (JUnit.xsd), as far as our elements go: attributes, all of them required but
# "skipped", and order of children. What it accepts, that of Jenkins (junit-10.xsd) accepts too.
ALLOWED = {
    "testsuites": (set(), ["testsuite"]),
    "testsuite": (
        {
            "name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "id",
            "package",
        },
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "properties": (set(), []),
    "testcase": ({"name", "classname", "time"}, ["error", "failure"]),
    "failure": ({"type", "message"}, []),
    "error": ({"type", "message"}, []),
    "system-out": (set(), []),
    "system-err": (set(), []),
}  # fmt: skip


@pytest.mark.parametrize(
    ("style", "line"),
    [
        ("2021", "\x1b[33m Run successfully with command - python3 a.py '--x=a b'!  \x1b[0m"),
        (
            "2022-05",
            "\x1b[33m Run successfully with command - model - python3 a.py '--x=a b'!  \x1b[0m",
        ),
        (
            "2022-08",
            (
                "\x1b[33m Run successfully with command - model - python3 a.py '--x=a b' - "
                "out/model/lite/a.log \x1b[0m"
            ),
        ),
    ],
)
def test_three_generations_of_status_lines(make: Make, style: str, line: str) -> None:
    report = make((step("a"), result("a", Outcome.PASSED)))
    assert status_line(report.steps[0], style) == line
    failed = make((step("a"), result("a", Outcome.FAILED, "x")))
    assert status_line(failed.steps[0], style) == line.replace("successfully", "failed")


def test_readers_that_split_at_dashes_are_not_misled(make: Make) -> None:
    report = make((step("a", argv=("x", "a - b", "two\nlines")), result("a", Outcome.PASSED)))
    line = status_line(report.steps[0], "2022-08")
    assert len(line.split(" - ")) == 4
    assert "\n" not in line


def test_every_step_has_its_line(everything: RunReport, tmp_path: Path) -> None:
    [path] = write_status(everything, tmp_path)
    assert path == tmp_path / "out/model/lite" / FILE_NAME
    lines = path.read_text().splitlines()
    assert [" successfully " in line for line in lines] == [
        True, True, False, False, False, False, False, True,
    ]  # fmt: skip
    assert all(line.split(" - ")[1] == "model" for line in lines)


def test_a_failure_that_was_put_right_is_gone_and_other_lines_stay(
    make: Make, tmp_path: Path
) -> None:
    write_status(make((step("a"), result("a", Outcome.FAILED, "x"))), tmp_path)
    write_status(make((step("b"), result("b", Outcome.FAILED, "x"))), tmp_path)
    [path] = write_status(make((step("a"), result("a", Outcome.PASSED))), tmp_path)
    lines = path.read_text().splitlines()
    assert [("a.py" in line, "failed" in line) for line in lines] == [(False, True), (True, False)]


def test_hollow_is_a_failure_unless_allowed(make: Make) -> None:
    report = make((step("a"), result("a", Outcome.HOLLOW, "why")))
    assert "failed" in status_line(report.steps[0], "2021")
    assert "successfully" in status_line(report.steps[0], "2021", allow_hollow=True)


def test_steps_without_an_end_have_no_line(make: Make, tmp_path: Path) -> None:
    assert write_status(make((step("a"), None)), tmp_path) == []
    assert set(FORMATS) == {"2021", "2022-05", "2022-08"}


def test_logs_in_several_places(make: Make, tmp_path: Path) -> None:
    outside = str(tmp_path / "far" / "b.log")
    report = make(
        (step("a"), result("a", Outcome.PASSED)),
        (step("b"), result("b", Outcome.PASSED, log=outside)),
    )
    assert write_status(report, tmp_path) == [tmp_path / "out/model/lite" / FILE_NAME]


def test_junit_is_of_the_schema(everything: RunReport, tmp_path: Path) -> None:
    top = ET.fromstring(junit_xml(everything, tmp_path))  # noqa: S314 - our own
    for element in top.iter():
        attributes, children = ALLOWED[element.tag]
        assert set(element.attrib) == attributes
        order = [children.index(child.tag) for child in element]
        assert order == sorted(order)
    [suite] = top
    assert [child.tag for child in suite if child.tag != "testcase"] == [
        "properties", "system-out", "system-err",
    ]  # fmt: skip
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("8", "3", "2")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert cases["bad"].find("failure") is not None
    assert cases["crash"].find("error") is not None
    assert cases["infer"].find("failure") is not None, "a blocked step is not green"
    assert "stale" not in "".join(cases["infer"].itertext()), "its log is that of an earlier run"
    assert len(cases["old"]) == len(cases["train"]) == 0
    assert "".join(cases["bad"].itertext()).rstrip().endswith("\nCannot open")
    assert suite.findtext("system-out") == "train: left 1 process(es) running"


def test_junit_holds_no_character_that_xml_forbids(make: Make, tmp_path: Path) -> None:
    report = make((step("a"), result("a", Outcome.FAILED, "a\x00b\ud800<&>")), config="c\x01")
    case = ET.fromstring(junit_xml(report, tmp_path))[0][1]  # noqa: S314 - our own
    assert case[0].get("message") == "a�b�<&>"


def test_hollow_in_junit(make: Make, tmp_path: Path) -> None:
    report = make((step("a"), result("a", Outcome.HOLLOW, "why")))
    assert 'type="hollow"' in junit_xml(report, tmp_path)
    assert "hollow" not in junit_xml(report, tmp_path, allow_hollow=True)


def test_annotations(everything: RunReport) -> None:
    lines = list(github_annotations(everything))
    assert [line.partition(" ")[0] for line in lines] == ["::error"] * 4
    assert lines[0] == (
        "::error file=configs/model/train_infer_python.txt,title=model%3A export failed::"
        "bad: Cannot open file inference.pdmodel (exit code 1)%0A"
        "Paddle 3 exports inference.json, the script wants inference.pdmodel: add --legacy-ir%0A"
        "log: out/model/lite/bad.log"
    )
    allowed = list(github_annotations(everything, allow_hollow=True))
    assert [line.partition(" ")[0] for line in allowed].count("::warning") == 1


def test_an_annotation_of_a_step_that_never_ended(make: Make) -> None:
    [line] = github_annotations(make((step("a"), None), interrupted_by="SIGINT"))
    assert "title=model%3A train not run::a: not run" in line


def test_all_files_at_once(everything: RunReport, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    write_files(everything, tmp_path, tmp_path / "o", style="2021", junit=tmp_path / "x/y.xml")
    assert (tmp_path / "o/results.json").read_text().startswith('{\n  "schema": "tipcheck.run/1"')
    assert (tmp_path / "x/y.xml").exists()
    assert not list(tmp_path.rglob("*.part"))


def test_the_last_results_of_a_config_outlive_a_run_of_another(
    everything: RunReport, make: Make, tmp_path: Path
) -> None:
    (tmp_path / "o").mkdir()
    write_files(everything, tmp_path, tmp_path / "o", style="2021")
    kept = tmp_path / "out/model/lite/results_train_infer_python.json"
    part = wire.loads(kept.read_text(), RunReport)
    assert part.steps == everything.steps
    assert (part.good, part.counts) == (everything.good, everything.counts)

    other = make((step("a"), result("a", Outcome.PASSED)), config="configs/model/other.txt")
    write_files(other, tmp_path, tmp_path / "o", style="2021")
    assert wire.loads((tmp_path / "o/results.json").read_text(), RunReport) == other
    assert wire.loads(kept.read_text(), RunReport) == part
    assert wire.loads(kept.with_name("results_other.json").read_text(), RunReport).good
