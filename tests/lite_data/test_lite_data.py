"""``tipcheck lite-data``: the same bytes everywhere, and no damaged or oversized set."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.scaffold.repos import call
from tipcheck.cli import lite_data
from tipcheck.config_plans.lite_data.archive import pack
from tipcheck.config_plans.lite_data.picture import problem_of
from tipcheck.errors import ToolError, UsageError

from .pictures import bmp, class_folders, gif, jpeg, list_files, png, put, webp


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def files_in(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_class_folders_with_a_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = class_folders(tmp_path / "full", "train", "val")
    (source / "train/empty").mkdir()
    (source / "train/.cache").mkdir()
    assert call(lite_data, source, "lite_data", "--train", 10, "--val", 5) == 0
    files = files_in(tmp_path / "lite_data")
    train = [name for name in files if name.startswith("train/")]
    assert (len(files), len(train)) == (15, 10)
    assert {name.split("/")[1] for name in train} == {f"c{number}" for number in range(5)}
    for name in files:
        assert (tmp_path / "lite_data" / name).read_bytes() == (source / name).read_bytes()
    told = capsys.readouterr().out
    assert "class folders in train/ and val/" in told
    assert "! no picture in train/empty" in told
    assert "10 for train, 5 for val, from 5 class(es)" in told
    assert f"sha256 {digest(tmp_path / 'lite_data.tar')}" in told


def test_class_folders_without_a_split_get_one(tmp_path: Path) -> None:
    for name, source in (
        ("a", class_folders(tmp_path / "full")),
        ("b", class_folders(tmp_path / "half", "train")),
    ):
        assert call(lite_data, source, name) == 0
        files = files_in(tmp_path / name)
        parts = {
            part: {file.split("/", 1)[1] for file in files if file.startswith(part)}
            for part in ("train", "val")
        }
        assert {part: len(found) for part, found in parts.items()} == {"train": 16, "val": 16}
        assert not parts["train"] & parts["val"]


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_list_files_keep_their_labels(tmp_path: Path, separator: str) -> None:
    source = list_files(tmp_path / "full", separator=separator)
    assert call(lite_data, source, "lite", "--train", 12, "--val", 4) == 0
    listed = (tmp_path / "lite/train_list.txt").read_text().splitlines()
    assert len(listed) == 12
    assert set(listed) <= set((source / "train_list.txt").read_text().splitlines())
    assert listed == sorted(listed)
    for line in listed:
        path = line.split(separator)[0]
        assert (tmp_path / "lite" / path).read_bytes() == (source / path).read_bytes()
    assert len({line.split(separator)[1] for line in listed}) == 10


def test_the_tar_is_the_same_on_two_machines(tmp_path: Path) -> None:
    first = class_folders(tmp_path / "one/full", "train", "val")
    assert call(lite_data, first, "one/lite_data") == 0
    second = tmp_path / "two/elsewhere"
    for path in sorted(first.rglob("*.png"), reverse=True):  # another order, times, permissions
        name = path.relative_to(first).as_posix()
        put(second, name, path.read_bytes())
        os.utime(second / name, (1_000_000_000, 1_000_000_000))
        (second / name).chmod(0o600)
    before = os.umask(0o077)
    try:
        assert call(lite_data, second, "two/lite_data") == 0
    finally:
        os.umask(before)
    tars = [tmp_path / "one/lite_data.tar", tmp_path / "two/lite_data.tar"]
    assert digest(tars[0]) == digest(tars[1])
    with tarfile.open(tars[0]) as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == sorted(
        (member.name for member in members), key=lambda name: name.split("/")
    )
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members} == {
        (946_684_800, 0, 0, "", "")
    }
    assert {m.mode for m in members} == {0o644, 0o755}
    subprocess.run(["tar", "-xf", tars[0], "-C", tmp_path], check=True)
    assert files_in(tmp_path / "lite_data") == files_in(tmp_path / "one/lite_data")


def test_the_choice_is_pinned(tmp_path: Path) -> None:
    """A new version must not choose other samples: repos have committed the tar."""
    source = class_folders(tmp_path / "full", "train", "val")
    call(lite_data, source, "lite_data", "--train", 3, "--val", 2)
    assert files_in(tmp_path / "lite_data") == PINNED
    call(lite_data, source, "other", "--train", 3, "--val", 2, "--seed", 1)
    assert files_in(tmp_path / "other") != PINNED


PINNED = ["train/c0/2.png", "train/c2/0.png", "train/c4/1.png", "val/c2/4.png", "val/c4/6.png"]


def test_damaged_pictures_are_passed_over_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = class_folders(tmp_path / "full", "train", "val", classes=1, each=20)
    for index in range(12):
        put(source, f"train/c0/{index}.png", png()[:40])
    put(source, "val/c0/0.png", b"")
    assert call(lite_data, source, "lite", "--train", 8, "--val", 19) == 0
    told = capsys.readouterr().out
    assert told.count("! passed over: ") == 10
    assert "! … and " in told
    with pytest.raises(
        UsageError, match=r"only 8 sample\(s\) for train, 9 wanted, 12 damaged .*--train 8"
    ):
        call(lite_data, source, "more", "--train", 9)
    assert not (tmp_path / "more").exists()


def test_a_listed_picture_that_is_missing(tmp_path: Path) -> None:
    source = list_files(tmp_path / "full", count=4)
    for path in (source / "val").rglob("*.png"):
        path.unlink()
    with pytest.raises(UsageError, match=r"only 0 .* for val.*cannot be read.*another data set"):
        call(lite_data, source, "lite", "--train", 4, "--val", 4)


def test_a_set_that_is_too_large_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "full"
    for part in ("train", "val"):
        for index in range(16):
            put(source, f"{part}/c/{index}.png", png() + bytes(1_000_000))
    with pytest.raises(UsageError, match=r"20 samples alone .* 20 MB.*fewer with --train"):
        call(lite_data, source, "lite")
    for part in ("train", "val"):  # what tar adds counts as well
        for index in range(16):
            put(source, f"{part}/c/{index}.png", png() + bytes(624_600))
    with pytest.raises(UsageError, match=r"would have 20\.0 MB.*nothing was written.*about"):
        call(lite_data, source, "lite")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    assert call(lite_data, source, "lite", "--train", 15) == 0
    assert (tmp_path / "lite.tar").stat().st_size < 20_000_000


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"train_list.txt": b"a 0\n"}, "has train_list.txt but no list for val"),
        ({"train.txt": b"a 0\n", "val.txt": b"\n"}, "val.txt: lists nothing"),
        ({"train.txt": b"a 0\nb\n", "val.txt": b"a 0\n"}, r"train.txt:2: 'b' is no line"),
        ({"train.txt": b"/a 0\n", "val.txt": b"a 0\n"}, "no line of the form"),
        ({"train.txt": b"../a 0\n", "val.txt": b"a 0\n"}, "no line of the form"),
        ({"train.txt": b"\xff\xfe 0\n", "val.txt": b"a 0\n"}, "is not UTF-8 text"),
        ({"notes.md": b"x"}, "no picture found; expected are list files"),
        ({"train/c/notes.md": b"x", "val/c/a.png": png()}, "no picture found for train"),
    ],
)
def test_data_sets_that_are_none(tmp_path: Path, lists: dict[str, bytes], message: str) -> None:
    for name, data in lists.items():
        put(tmp_path / "full", name, data)
    with pytest.raises(UsageError, match=message):
        call(lite_data, tmp_path / "full", "lite")


def test_places_that_cannot_be(tmp_path: Path) -> None:
    source = class_folders(tmp_path / "full")
    with pytest.raises(UsageError, match="no such folder"):
        call(lite_data, tmp_path / "nowhere", "lite")
    with pytest.raises(UsageError, match="lies inside the data set"):
        call(lite_data, source, source / "lite")
    with pytest.raises(UsageError, match="--val is 0"):
        call(lite_data, source, "lite", "--val", 0)
    (tmp_path / "lite.tar").touch()
    with pytest.raises(UsageError, match=r"lite\.tar: exists"):
        call(lite_data, source, "lite")
    with pytest.raises(UsageError, match="is no name for a folder"):
        call(lite_data, source, "/")
    (tmp_path / "file").touch()
    with pytest.raises(ToolError, match="cannot be written"):
        call(lite_data, source, "file/lite")


def test_a_data_set_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    source = class_folders(tmp_path / "full")
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(ToolError, match=r"full: cannot be read \(Permission denied\)"):
        call(lite_data, source, "lite")


def test_names_that_no_text_holds(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path / "full/c")
    (tmp_path / "full/c").mkdir(parents=True)
    for index in range(4):
        Path(os.fsdecode(folder + b"/\xff%d.png" % index)).write_bytes(png(index))
    with pytest.raises(UsageError, match="is no UTF-8 name"):
        call(lite_data, tmp_path / "full", "lite", "--train", 1, "--val", 1)
    assert not (tmp_path / "lite").exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = class_folders(tmp_path / "full")
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if target.name.endswith(".tar"):
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(ToolError, match="No space left"):
        call(lite_data, source, "lite")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


@pytest.mark.parametrize("data", [png(), jpeg(), bmp(), gif(), webp()])
def test_whole_pictures_pass_and_cut_ones_do_not(data: bytes) -> None:
    assert problem_of(data) is None
    assert problem_of(data[: len(data) * 2 // 3]) == "is cut off"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is empty"),
        (b"text", "is no JPEG, PNG, BMP, GIF or WebP picture"),
        (png()[:60] + b"x" + png()[61:], "has a damaged PNG chunk"),
        (png()[:-12], "is cut off"),
        (jpeg()[:2] + b"xxxx", "has a damaged JPEG segment"),
        (jpeg()[:3], "is cut off"),
        (b"\xff\xd8" + jpeg()[jpeg().index(b"\xff\xda") :], "is cut off"),
        (b"RIFF\0\0\0\0WAVE", "is no WebP picture"),
    ],
)
def test_what_is_wrong_with_a_picture(data: bytes, problem: str) -> None:
    assert problem_of(data) == problem


def test_a_tar_can_be_read_back(tmp_path: Path) -> None:
    data = pack("集", {"train/类/a.png": png(), "x" * 150 + "/b.png": b"1"})
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert "集/train/类/a.png" in archive.getnames()
