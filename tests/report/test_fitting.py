"""Tables on narrow terminals: what is left out is told, and nothing else is cut."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from tipcheck.compare import compare_arrays
from tipcheck.report.comparison import show_comparison
from tipcheck.report.fitting import print_fitting

WIDE = "a name that is far longer than there is room for in any terminal of this test"


def shown(width: int, spare: tuple[str, ...], cut: tuple[str, ...] = ()) -> str:
    console = Console(file=io.StringIO(), width=width)
    table = Table(box=None)
    table.add_column("name", overflow="fold")
    for header in ("verdict", "first", "second", "place"):
        table.add_column(header)
    table.add_row(WIDE, "PASS", "11111111", "22222222", WIDE if cut else "here")
    print_fitting(console, table, spare, cut=cut)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_with_room_nothing_is_left_out() -> None:
    text = shown(150, ("first", "second"))
    assert "11111111" in text
    assert "22222222" in text
    assert "no room" not in text


def test_columns_go_in_the_order_given_and_only_as_many_as_have_to() -> None:
    text = shown(54, ("second", "first"))
    assert "22222222" not in text
    assert "11111111" in text
    assert text.splitlines()[-1] == "no room in 54 columns for: second"


def test_a_column_that_folds_keeps_all_of_its_text() -> None:
    lines = shown(44, ("first", "second")).splitlines()
    assert lines[-1] == "no room in 44 columns for: first, second"
    width = lines[0].index("verdict")
    folded = "".join(line[:width].replace(" ", "") for line in lines[1:-1])
    assert folded == WIDE.replace(" ", "")


def test_a_column_that_may_be_cut_does_not_drive_others_out() -> None:
    text = shown(100, ("first", "second"), cut=("place",))
    assert "no room" not in text
    assert "11111111" in text


@pytest.mark.parametrize("width", range(58, 141, 3))
def test_a_comparison_shows_every_verdict_whole_at_any_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {"logits": np.ones((2, 1000), np.float32), "boxes": np.arange(8)}
    other = {"logits": np.zeros((2, 1000), np.float32), "boxes": np.arange(8)}
    monkeypatch.setenv("COLUMNS", str(width))
    show_comparison(compare_arrays(one, other))
    table = capsys.readouterr().out.split("logits: ")[0]
    for whole in ("✗ FAIL", "✓ PASS", "logits", "2,000/2,000", "0/8", "numbers", "exact"):
        assert whole in table, table
    assert "…" not in table
