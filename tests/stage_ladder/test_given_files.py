"""Files of inputs that are none: each kind of damage is one line and code 2, and nothing runs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from tipcheck.backends.inputs.archives import read_feed
from tipcheck.cli.main import main
from tipcheck.errors import UsageError


def whole(folder: Path) -> bytes:
    np.savez(folder / "whole.npz", x=np.arange(600, dtype=np.float32))
    return (folder / "whole.npz").read_bytes()


def test_a_whole_file(tmp_path: Path) -> None:
    whole(tmp_path)
    feed = read_feed(tmp_path / "whole.npz")
    assert list(feed) == ["x"]
    assert feed["x"].sum() == 600 * 599 / 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _: b"", "it is no .npz archive"),
        (lambda _: b"PK\x03\x04 nonsense", "it is no .npz archive"),
        (lambda _: b"text\n", "it is no .npz archive"),
        (lambda data: data[:400], "it is no .npz archive"),
        (lambda data: data[:900] + b"\x00" * 40 + data[940:], "cannot be read"),
        (lambda data: data.replace(b"NUMPY", b"NOMPY"), "cannot be read"),
    ],
)
def test_a_damaged_file(tmp_path: Path, change: object, told: str) -> None:
    file = tmp_path / "a.npz"
    file.write_bytes(change(whole(tmp_path)))  # type: ignore[operator]
    with pytest.raises(UsageError, match=told):
        read_feed(file)


def test_what_is_no_archive_at_all(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(3))
    with pytest.raises(UsageError, match="one array without a name"):
        read_feed(tmp_path / "a.npy")
    with pytest.raises(UsageError, match="No such file"):
        read_feed(tmp_path / "gone.npz")
    with pytest.raises(UsageError, match="Is a directory"):
        read_feed(tmp_path)
    np.savez(tmp_path / "objects.npz", x=np.array([object()]))
    with pytest.raises(UsageError, match="Object arrays cannot be loaded"):
        read_feed(tmp_path / "objects.npz")
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("x.npy", "no array")
    with pytest.raises(UsageError, match=r"\(x is no array\)"):
        read_feed(tmp_path / "text.npz")


@pytest.mark.paddle
def test_the_command_says_it_on_one_line(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cut.npz").write_bytes(whole(tmp_path)[:500])
    for option in ("--input", "--calibration"):
        assert main(["verify", str(export), option, str(tmp_path / "cut.npz")]) == 2
        told = capsys.readouterr().err
        assert "cut.npz: cannot be read" in told
        assert told.count("\n") == 1
    files = ["--stages", "executor,inference", "--kinds", "normal", "--no-state"]
    assert main(["verify", str(export), *files, "--junit", "/dev/full"]) == 3
    assert "/dev/full: cannot write" in capsys.readouterr().err
