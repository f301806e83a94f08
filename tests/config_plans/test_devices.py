from __future__ import annotations

import pytest

from tipcheck.config_plans.devices import Device, Habits, by_length, by_meaning

TWO = "192.168.0.1,192.168.0.2"


@pytest.mark.parametrize(
    ("entry", "device"),
    [
        ("0", Device("0", "", "1", "one", "0")),
        ("-1", Device("-1", "", "1", "one", "")),
        ("10", Device("10", "", "1", "one", "10")),
        ("0,1", Device("0,1", "", "1", "many", "0")),
        (f"{TWO};0,1", Device("0,1", TWO, "2", "nodes", "")),
        ("0,1,2,3,4,5,6,7,8", Device("", "0,1,2,3,4,5,6,7,8", "9", "one", "")),
        ("192.168.0.11;0,1", Device("0,1", "192.168.0.11", "1", "many", "")),
    ],
)
def test_by_length(entry: str, device: Device) -> None:
    assert by_length(entry, Habits()) == device


@pytest.mark.parametrize(
    ("entry", "device"),
    [
        ("0", Device("0", "", "1", "one", "0")),
        ("-1", Device("-1", "", "1", "one", "")),
        ("0,1,2,3,4,5,6,7,8", Device("0,1,2,3,4,5,6,7,8", "", "1", "many", "0")),
        ("1.1.1.1;0,1", Device("0,1", "1.1.1.1", "1", "nodes", "")),
        (f"{TWO};3", Device("3", TWO, "2", "nodes", "")),
        ("gpu", None),
        (";0", None),
        ("", None),
    ],
)
def test_by_meaning(entry: str, device: Device | None) -> None:
    assert by_meaning(entry, Habits()) == device


def test_habits() -> None:
    assert by_length("0,1", Habits(visible="all")).visible == "0,1"
    assert by_meaning("0,1", Habits(visible="all")) == Device("0,1", "", "1", "many", "0,1")
    first = Habits(visible_on_nodes="first")
    assert by_length(f"{TWO};2,3", first).visible == "2"
    assert by_meaning(f"{TWO};2,3", first) == Device("2,3", TWO, "2", "nodes", "2")
    assert by_length(f"{TWO};0,1", Habits(nodes_above=26)).kind == "many"


def test_the_ids() -> None:
    assert by_length("0,1", Habits()).ids == ("0", "1")
    assert by_length("-1", Habits()).ids == ()
