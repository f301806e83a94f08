"""Made inputs are what their names say, fit the specs, and are the same on every machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tipcheck.backends.inputs.drawn import KINDS, Size, make_feed, make_sets, sizes_for, write_set
from tipcheck.backends.subject import InputSet, InputSpec, Subject, load_subject, save_subject
from tipcheck.errors import UsageError

IMAGE = InputSpec("image", (-1, 3, -1, -1), "float32")
IDS = InputSpec("ids", (-1, -1), "int64", 50)


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_every_kind_fits_the_specs(kind: str) -> None:
    specs = [
        IMAGE,
        IDS,
        InputSpec("mask", (-1, -1), "bool"),
        InputSpec("bytes", (-1, 4), "uint8"),
        InputSpec("half", (2, 2), "float16"),
        InputSpec("brain", (2, 2), "bfloat16"),
        InputSpec("flag", (), "int32"),
    ]
    feed = make_feed(specs, kind, Size(batch=2, side=32, length=5), seed=1)
    assert feed["image"].shape == (2, 3, 32, 32)
    assert feed["ids"].shape == (2, 5)
    assert feed["brain"].dtype == np.uint16
    assert feed["flag"].shape == ()
    for spec in specs:
        if spec.dtype != "bfloat16":
            assert feed[spec.name].dtype == np.dtype(spec.dtype)
    assert 0 <= feed["ids"].min() <= feed["ids"].max() < 50
    assert np.isfinite(feed["half"].astype(np.float64)).all()
    again = make_feed(specs, kind, Size(batch=2, side=32, length=5), seed=1)
    for name, array in feed.items():
        np.testing.assert_array_equal(array, again[name])


def test_kinds_are_what_their_names_say() -> None:
    made = {kind.name: make_feed([IMAGE, IDS], kind.name, Size())["image"] for kind in KINDS}
    assert not made["zeros"].any()
    assert (made["ones"] == 1).all()
    assert (made["negative"] <= 0).all()
    assert (made["uniform"] >= 0).all()
    assert np.abs(made["large"]).max() > 1000
    assert np.abs(made["tiny"]).max() < 1e-4
    assert len(np.unique(made["ties"])) == 3


def test_another_seed_or_name_gives_other_numbers() -> None:
    twin = InputSpec("twin", IMAGE.shape, IMAGE.dtype)
    feed = make_feed([IMAGE, twin], "normal", Size())
    assert not np.array_equal(feed["image"], feed["twin"])
    assert not np.array_equal(feed["image"], make_feed([IMAGE], "normal", Size(), 1)["image"])


def test_every_open_axis_changes_once() -> None:
    assert {size.batch for size in sizes_for([IMAGE])} == {1, 2, 3}
    assert len({size.side for size in sizes_for([IMAGE])}) == 2
    assert len({size.length for size in sizes_for([IDS])}) == 2
    assert sizes_for([InputSpec("x", (2, 3), "float32")]) == (Size(),)


def test_sets_are_files_with_names(tmp_path: Path) -> None:
    sets = make_sets([IDS], tmp_path, kinds=["uniform"])
    names = [item.name for item in sets]
    assert names == ["uniform", "uniform, batch 1", "uniform, batch 3", "uniform, length 24"]
    with np.load(tmp_path / sets[2].archive) as arrays:
        assert arrays["ids"].shape == (3, 16)


def test_what_cannot_be_made_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no kind of inputs 'odd'"):
        make_sets([IDS], tmp_path, kinds=["odd"])
    with pytest.raises(UsageError, match="called 'file'"):
        write_set({"file": np.zeros(1)}, tmp_path, 0, "x")


def test_a_subject_survives_its_folder(tmp_path: Path) -> None:
    write_set({"x": np.zeros(2, np.float32)}, tmp_path, 0, "given")
    subject = Subject(
        "net", "", (InputSpec("x", (2,), "float32"),), (InputSet("a", "inputs_0.npz"),)
    )
    save_subject(subject, tmp_path)
    assert load_subject(tmp_path) == subject
    (tmp_path / "inputs_0.npz").unlink()
    with pytest.raises(UsageError, match=r"names inputs_0\.npz, which is not there"):
        load_subject(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        load_subject(tmp_path / "nowhere")
