from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tipcheck.step_runner.contract import End
from tipcheck.step_runner.ending import signal_name, to_result
from tipcheck.step_runner.outcome import Outcome
from tipcheck.step_runner.reason import clean_lines, last_error, last_line, tail_of

if TYPE_CHECKING:
    from pathlib import Path

PADDLE_TAIL = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
  File "train.py", line 2, in main
    paddle.matmul(a, b)
ValueError: (InvalidArgument) Input X's width should be the Y's height
  [Hint: Expected x[1] == y[0], but received x[1]:3 != y[0]:4.] (at /paddle/phi/infermeta.cc:102)
  [operator < matmul_v2 > error]
terminate called without an active exception
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("epoch 1\nepoch 2\n", "epoch 2"),
        (PADDLE_TAIL, "ValueError: (InvalidArgument) Input X's width should be the Y's height"),
        ("a\npaddle.base.core.EnforceNotMet: x\nbye", "paddle.base.core.EnforceNotMet: x"),
        ("FatalError: `Segmentation fault` is detected.\nC++ Traceback:\n0 x::y()\n",
         "FatalError: `Segmentation fault` is detected."),
        ("AssertionError\nclosing", "AssertionError"),
        ("sh: 1: foo: not found\nleaving\n", "sh: 1: foo: not found"),
        ("0 errors\nall fine\n", "all fine"),
        ("DeprecationWarning: error in future\nstep 3", "step 3"),
        ("\x1b[31mKeyError: 'k'\x1b[0m\n", "KeyError: 'k'"),
        ("10%\r20%\r30%", "30%"),
        ("bad\ntipcheck: ended after 3 s, because of an error\n", "bad"),
        ("KeyboardInterrupt\nRuntimeError: x\nKeyboardInterrupt: y", "RuntimeError: x"),
        ("\ufffd\ufffd3\n\ufffda\n\ufffd\ufffd\n#", "its log ends with something that is no text"),
        ("\ufffd\ufffd3\n\ufffda\nKeyError: 3\n#", "KeyError: 3"),
    ],
)  # fmt: skip
def test_the_line_that_says_what_went_wrong(text: str, line: str) -> None:
    assert last_error(text) == line


def test_binary_becomes_readable() -> None:
    assert clean_lines("a\0\x01b\x7f\n\n \t\n\x1b]0;title\x07c") == ["a b", "c"]


def test_only_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x" * 100_000 + "\nlast\n")
    assert len(tail_of(log)) == 65536
    assert last_line(log) == "last"
    assert tail_of(tmp_path / "none") == ""
    assert last_line(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("end", "outcome", "reason"),
    [
        (End("k", exit_code=0), Outcome.PASSED, ""),
        (End("k", exit_code=0, hollow="why"), Outcome.HOLLOW, "why"),
        (End("k", exit_code=1, hollow="why"), Outcome.FAILED, "KeyError: 'k' (exit code 1)"),
        (End("k", trouble="gone"), Outcome.FAILED, "gone"),
        (
            End("k", exit_code=0, cut="timeout"),
            Outcome.TIMED_OUT,
            "ended after its time limit of 3 s",
        ),
        (End("k", signal=11), Outcome.CRASHED, "died on SIGSEGV: KeyError: 'k'"),
        (
            End("k", signal=9, last_words="\n"),
            Outcome.CRASHED,
            "died on SIGKILL (often the system's out-of-memory killer)",
        ),
        (
            End("k", exit_code=139, last_words="Segmentation fault\n"),
            Outcome.FAILED,
            "Segmentation fault (exit code 139: a process of it died on SIGSEGV)",
        ),
        (
            End("k", exit_code=255, last_words=" "),
            Outcome.FAILED,
            "its log is empty (exit code 255)",
        ),
    ],
)
def test_from_an_end_to_an_outcome(tmp_path: Path, end: End, outcome: Outcome, reason: str) -> None:
    log = tmp_path / "log"
    log.write_text("KeyError: 'k'\n")
    result = to_result("step", end, str(log), 3.0, shown_log="log")
    assert (result.outcome, result.reason) == (outcome, reason)
    assert (result.step_id, result.log) == ("step", "log")


def test_notes_are_kept_whatever_the_outcome() -> None:
    end = End("k", exit_code=0, left_behind=2, log_note="cut")
    result = to_result("step", end, "/none", None, shown_log="x")
    assert result.note == "cut; left 2 process(es) running, which were ended"


def test_real_time_signals_have_numbers() -> None:
    assert signal_name(15) == "SIGTERM"
    assert signal_name(40) == "signal 40"


def test_binary_is_no_reason() -> None:
    noise = bytes(range(128, 256)).decode("utf-8", "replace")
    assert last_error(f"ValueError: x\n{noise}") == "ValueError: x"
    assert last_error(f"{noise}\n{noise}") == "its log ends with something that is no text"
