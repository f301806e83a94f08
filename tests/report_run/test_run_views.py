from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.report_run.conftest import Make, result, step
from tipcheck.config_plans import Plan
from tipcheck.report.run_lines import PlainLines
from tipcheck.report.run_result import RunReport
from tipcheck.report.run_table import show_run
from tipcheck.report.run_view import LiveView
from tipcheck.report.run_words import duration, size
from tipcheck.report.terminal import terminal
from tipcheck.step_runner.outcome import Outcome
from tipcheck.step_runner.task import Task, make_tasks
from tipcheck.step_runner.watcher import Beginning


def tasks(root: Path, number: int, plans: int = 1) -> list[Task]:
    return make_tasks(
        [
            Plan(f"c{n}.txt", "lite", "T", f"model{n}", tuple(step(f"s{k}") for k in range(number)))
            for n in range(plans)
        ],
        root,
    )


def beginning(all_tasks: list[Task], since: float | None = None) -> Beginning:
    return Beginning(run=3, tasks=all_tasks, jobs=2, continues_since=since)


def screen(height: int = 20) -> Console:
    """Return a terminal of the real look that keeps what is printed on it."""
    console = terminal()
    console.file = io.StringIO()
    console._force_terminal = True
    console._color_system = None
    console._environ = {"TERM": "xterm"}
    console.is_interactive = True
    console.width, console.height = 100, height
    return console


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (9.9, "9.9 s"), (59.2, "59 s"), (61, "1 m 01 s"), (3700, "1 h 01 m")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(None, ""), (12, "12 B"), (12_345_678, "12.3 MB"), (999_600, "1 MB"), (2.5e9, "2.5 GB")],
)
def test_sizes(number: int | None, words: str) -> None:
    assert size(number) == words


def test_the_table_at_the_end(everything: RunReport) -> None:
    console = screen()
    show_run(everything, console)
    text = text_of(console)
    assert "configs/model/  lite" in text
    assert "train_infer_pyth" in text
    assert "✗ 1/2 crashed" in text
    assert "→ Paddle 3 exports inference.json" in text
    assert "log: out/model/lite/bad.log" in text
    assert "measured by AutoLog" in text
    assert "✗ failed model bad" in text
    assert "· 1/2 blocked" in text
    assert "NOT GOOD  8 steps: 1 failed, 1 crashed, 1 timed out, 1 hollow, 1 blocked" in text


def test_a_good_run_in_the_table(make: Make) -> None:
    console = screen()
    show_run(make((step("a"), result("a", Outcome.PASSED)), config="c.txt"), console)
    assert "GOOD  1 step: 1 passed" in text_of(console)
    assert "✓ passed" in text_of(console)


def test_an_interrupted_run_in_the_table(make: Make) -> None:
    console = screen()
    show_run(
        make(
            (step("a"), result("a", Outcome.PASSED)),
            (step("b", "eval"), None),
            interrupted_by="SIGINT",
        ),
        console,
    )
    text = text_of(console)
    assert "INTERRUPTED by SIGINT  2 steps: 1 passed, 1 not run" in text
    assert "the same command goes on from here" in text


def test_one_cause_is_one_entry_however_many_steps_have_it(make: Make) -> None:
    console = screen()
    same = [(step(f"s{n}"), result(f"s{n}", Outcome.FAILED, "KeyError: x")) for n in range(500)]
    others = [(step(f"o{n}"), result(f"o{n}", Outcome.FAILED, f"E{n}")) for n in range(100)]
    show_run(make(*same, *others), console)
    text = text_of(console)
    assert text.count("KeyError: x") == 1
    assert "model s3 and 496 more" in text
    assert "and 81 more causes, in results.json" in text
    assert len(text.splitlines()) < 120


def test_ten_thousand_configs_make_one_page(make: Make) -> None:
    report = make(*[(step(f"s{n}"), result(f"s{n}", Outcome.PASSED)) for n in range(100)])
    steps = tuple(replace(each, config=f"/c/{n}.txt") for n, each in enumerate(report.steps))
    console = screen()
    show_run(replace(report, steps=steps), console)
    assert "and 60 configs more, 0 of them not good" in text_of(console)


def test_modes_and_places_of_configs_are_shown_where_they_differ(make: Make) -> None:
    one = make((step("a"), result("a", Outcome.PASSED)), config="/abs/c.txt").steps[0]
    two = make((step("a"), result("a", Outcome.PASSED)), config="rel/c.txt")
    other = replace(one, mode="whole")
    console = screen()
    show_run(replace(two, steps=(one, other, *two.steps)), console)
    text = text_of(console)
    assert "/abs/c.txt" in text
    assert "whole" in text


def test_plain_lines(tmp_path: Path) -> None:
    stream = io.StringIO()
    lines = PlainLines(stream)
    a, b, c, d = tasks(tmp_path, 4)
    lines.began(beginning([a, b, c, d]))
    lines.skipped(a, result("s0", Outcome.SKIPPED, "passed on Monday"))
    lines.skipped(b, result("s1", Outcome.PASSED))
    lines.runs_again(c, "code changed: x.py")
    lines.started(c)
    lines.finished(c, result("s2", Outcome.FAILED, "KeyError: x", note="log was cut"))
    lines.finished(d, result("s3", Outcome.BLOCKED, "needs s2: failed", peak_memory_bytes=None))
    lines.ended([])
    assert stream.getvalue().splitlines() == [
        "run 3 begins: 1 config, 4 steps, 2 at a time",
        "[1/4] skipped    train  s0  passed on Monday",
        "[2/4] passed     train  s1  before the run was interrupted",
        "[2/4] again      train  s2  code changed: x.py",
        "[2/4] start      train  s2",
        (
            "[3/4] FAILED     train  s2  1.0 s  12 MB  KeyError: x  log was cut  "
            "log: out/model/lite/s2.log"
        ),
        "[4/4] BLOCKED    train  s3  needs s2: failed",
    ]


def test_plain_lines_of_several_configs_and_a_continued_run(tmp_path: Path) -> None:
    stream = io.StringIO()
    lines = PlainLines(stream)
    all_tasks = tasks(tmp_path, 1, plans=2)
    lines.began(beginning(all_tasks, since=1_700_000_000.0))
    lines.started(all_tasks[1])
    first, second = stream.getvalue().splitlines()
    assert first.startswith("run 3 goes on (it began on 2023-11-")
    assert second == "[0/2] start      model1  train  s0"


def test_a_quiet_run_says_what_it_does(tmp_path: Path) -> None:
    stream = io.StringIO()
    lines = PlainLines(stream, quiet=-1)
    [task] = tasks(tmp_path, 1)
    lines.began(beginning([task]))
    lines.tick()
    lines.started(task)
    lines.tick()
    task.log.parent.mkdir(parents=True)
    task.log.write_text("epoch 1\nepoch 2\n")
    lines.tick()
    told = stream.getvalue().splitlines()[-2:]
    assert told == [
        "[0/1] running    train  s0  0.0 s",
        "[0/1] running    train  s0  0.0 s  epoch 2",
    ]


def test_a_reader_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    class Gone(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    lines = PlainLines(Gone())
    [task] = tasks(tmp_path, 1)
    lines.began(beginning([task]))
    lines.started(task)


def test_odd_characters_do_not_end_the_run(tmp_path: Path) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    lines = PlainLines(stream)
    [task] = tasks(tmp_path, 1)
    lines.began(beginning([task]))
    lines.finished(task, result("s0", Outcome.FAILED, "错误 \ud800"))
    stream.flush()
    assert b"\\u9519\\u8bef \\ud800" in stream.buffer.getvalue()


def test_the_live_view(tmp_path: Path) -> None:
    console = screen()
    view = LiveView(console, redraw=0)
    all_tasks = tasks(tmp_path, 3, plans=2)
    view.began(beginning(all_tasks, since=1_700_000_000.0))
    view.skipped(all_tasks[0], result("s0", Outcome.SKIPPED, "passed"))
    view.runs_again(all_tasks[1], "code changed: x.py")
    view.started(all_tasks[1])
    all_tasks[1].log.parent.mkdir(parents=True)
    all_tasks[1].log.write_text("epoch 7 [red]loss 0.1\n")
    view.tick()
    text = text_of(console)
    assert "run 3  2 configs, 6 steps, 2 at a time; goes on with the run of 2023-11-" in text
    assert "↻ model0 train s1  again: code changed: x.py" in text
    assert "1/6" in text
    assert "1 skipped" in text
    assert "epoch 7 [red]loss 0.1" in text, "a log is no markup"
    view.finished(all_tasks[1], result("s1", Outcome.FAILED, "KeyError: x"))
    view.finished(all_tasks[2], result("s2", Outcome.BLOCKED, "needs s1"))
    view.finished(all_tasks[3], result("s0", Outcome.PASSED))
    view.tick()
    view.ended([])
    view.close()
    text = text_of(console)
    assert "✗ model0 train s1  failed after 1.0 s: KeyError: x" in text
    assert "1 failed  1 blocked  1 passed  1 skipped" in text
    assert "needs s1" not in text


def test_the_live_view_stays_within_its_screen(tmp_path: Path) -> None:
    console = screen(height=12)
    view = LiveView(console, redraw=1000)
    all_tasks = tasks(tmp_path, 2000)
    view.began(beginning(all_tasks))
    for task in all_tasks[:1000]:
        view.started(task)
    view.tick()
    shown = console.render_lines(view.picture())
    assert len(shown) <= 12
    assert "and 993 more running" in "".join(part.text for line in shown for part in line)
    for task in all_tasks[:1000]:
        view.runs_again(task, "x")
        view.finished(task, result(task.step.id, Outcome.FAILED, "x"))
    view.close()
    assert text_of(console).count("failed after") == 30


def test_a_failure_is_shown_though_the_run_was_interrupted(make: Make) -> None:
    report = make(
        (step("a"), result("a", Outcome.FAILED, "why")), (step("b"), None), interrupted_by="SIGINT"
    )
    console = screen()
    show_run(report, console)
    assert "1/2 failed" in text_of(console)
