"""Damaged, foreign and huge files: an error that says what to do, or a right answer."""

from __future__ import annotations

import io
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tipcheck.compare import Status, compare_files
from tipcheck.compare.archive import open_archive
from tipcheck.errors import UsageError


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.npz"
    np.savez(path, y=np.arange(1000, dtype=np.float32), n=np.array([1, 2]))
    return path


def refused(path: Path, good: Path) -> str:
    with pytest.raises(UsageError) as error:
        compare_files(path, good)
    text = str(error.value)
    assert text.startswith(str(path))
    return text


def member(array: np.ndarray[Any, Any], **options: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)  # type: ignore[no-untyped-call]
    return file.getvalue()


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_reads_what_numpy_writes(save: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    arrays = {
        "f": random.standard_normal((3, 50_000)),
        "fortran": np.asfortranarray(random.standard_normal((30, 40))),
        "scalar": np.float32(3),
        "folder/name": np.array([True]),
        "text": np.array(["a", "bc"]),
    }
    path = tmp_path / "a.npz"
    save(path, **arrays)
    with open_archive(path) as tensors:
        assert set(tensors) == set(arrays)
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(tensor.whole(), arrays[name])
    assert compare_files(path, path).status is Status.PASS


def test_reads_an_array_without_elements(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, y=np.zeros((0, 3)))
    with open_archive(path) as tensors:
        assert tensors["y"].whole().shape == (0, 3)
    assert compare_files(path, path).status is Status.FAIL


def test_arrays_stored_in_different_orders_are_compared(tmp_path: Path) -> None:
    rows = np.arange(12.0).reshape(3, 4)
    wrong = rows.copy()
    wrong[2, 1] = 0
    np.savez(tmp_path / "rows.npz", y=rows)
    np.savez(tmp_path / "columns.npz", y=np.asfortranarray(wrong))
    for one, other in (("rows", "columns"), ("columns", "rows")):
        result = compare_files(tmp_path / f"{one}.npz", tmp_path / f"{other}.npz")
        assert result.tensors[0].worst is not None
        assert result.tensors[0].worst.index == (2, 1)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("exploded"),))


def test_pickled_objects_are_never_unpickled(
    tmp_path: Path, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "pickled.npz"
    np.savez(path, y=np.array([Bomb()], dtype=object))
    assert "never unpickled" in refused(path, good)
    bare = tmp_path / "bare.npz"
    bare.write_bytes(pickle.dumps(Bomb()))
    assert "is not an .npz file" in refused(bare, good)
    assert not (tmp_path / "exploded").exists()


def test_missing_file(tmp_path: Path, good: Path) -> None:
    assert "No such file" in refused(tmp_path / "nowhere.npz", good)


def test_directory(tmp_path: Path, good: Path) -> None:
    assert "is a directory" in refused(tmp_path, good)


def test_empty_file(tmp_path: Path, good: Path) -> None:
    path = tmp_path / "empty.npz"
    path.touch()
    assert "is empty" in refused(path, good)


def test_single_array(tmp_path: Path, good: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.ones(3))
    assert "numpy.savez" in refused(path, good)


@pytest.mark.parametrize("text", [b"hello", b"\x00" * 100, b"PK", b"PK\x03\x04 and nothing more"])
def test_no_archive_at_all(text: bytes, tmp_path: Path, good: Path) -> None:
    path = tmp_path / "foreign.npz"
    path.write_bytes(text)
    assert "is damaged" in refused(path, good) or "is not an .npz file" in refused(path, good)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_truncated_anywhere(share: float, tmp_path: Path, good: Path) -> None:
    data = good.read_bytes()
    path = tmp_path / "cut.npz"
    path.write_bytes(data[: int(len(data) * share)])
    assert refused(path, good)


def test_a_flipped_bit_in_the_data_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, y=np.zeros(100_000, np.float32))
    data = bytearray(path.read_bytes())
    data[200_000] ^= 1
    broken = tmp_path / "broken.npz"
    broken.write_bytes(data)
    assert "cannot be read (Bad CRC-32" in refused(broken, path)


@pytest.mark.parametrize(("offset", "told"), [(26, "File name in directory"), (28, "EOFError")])
def test_what_a_library_quotes_is_cut_and_never_empty(
    offset: int, told: str, tmp_path: Path
) -> None:
    """The lengths in a member's header: zipfile quotes the bytes there, or says nothing at all."""
    path = archive(tmp_path / "a.npz", y=member(np.zeros(1000)))
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x7F
    broken = tmp_path / "broken.npz"
    broken.write_bytes(data)
    message = refused(broken, path).removeprefix(str(broken))
    assert f"cannot be read ({told}" in message
    assert len(message) < 200


def test_every_flipped_bit_is_an_error_or_harmless(tmp_path: Path, good: Path) -> None:
    """A flip is noticed, or leaves the arrays as they were: never a crash, never another PASS."""
    data = good.read_bytes()
    path = tmp_path / "flipped.npz"
    for place in range(0, len(data), 7):
        flipped = bytearray(data)
        flipped[place] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        try:
            result = compare_files(path, good)
        except UsageError:
            continue
        if result.status is Status.PASS:
            with np.load(path) as arrays:
                np.testing.assert_array_equal(arrays["y"], np.arange(1000, dtype=np.float32))


def test_header_that_promises_more_than_there_is(tmp_path: Path, good: Path) -> None:
    data = member(np.zeros(4))
    longer = data.replace(b"(4,), ", b"(4000,)")[: len(data)]
    assert "its header promises" in refused(archive(tmp_path / "a.npz", y=longer), good)


def header(shape: str) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cannot be read"),
        (b"no array", "cannot be read"),
        (member(np.zeros(2), version=(3, 0)), "format 3.0"),
        (member(np.zeros(2, [("a", "f4")])), "structured array"),
        (member(np.zeros(2))[:-3], "promises"),
        (member(np.zeros(2)).replace(b"(2,), ", b"(-2,),"), "its shape is (-2,)"),
        (member(np.zeros(2)).replace(b"'<f8'", b"'<z9'"), "cannot be read"),
        (header("(True,)") + bytes(4), "its shape is (True,)"),
        (header(f"({10**30}, 0)"), "its shape is (1000"),
        (header(f"({10**18}, {10**18})"), "promises"),
        (header("(" + "1, " * 100 + ")") + bytes(4), "it has 100 axes"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", "its header cannot be read"),
    ],
)
def test_members_that_are_no_plain_arrays(
    data: bytes, message: str, tmp_path: Path, good: Path
) -> None:
    assert message in refused(archive(tmp_path / "a.npz", y=data), good)


def test_version_two_headers_are_read(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", y=member(np.ones(3), version=(2, 0)))
    assert compare_files(path, path).status is Status.PASS


def test_something_else_in_the_archive(tmp_path: Path, good: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "hello")
    assert "'readme.txt', which is no array" in refused(path, good)


def test_two_arrays_of_one_name(tmp_path: Path, good: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("y.npy", member(np.ones(2)))
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("y.npy", member(np.zeros(2)))
    assert "two arrays 'y'" in refused(path, good)


def test_unreadable_file(tmp_path: Path, good: Path) -> None:
    path = tmp_path / "loop.npz"
    path.symlink_to(path)
    assert "symbolic links" in refused(path, good)


def test_pipes_and_devices_are_not_waited_for(tmp_path: Path, good: Path) -> None:
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        assert "is a device or a pipe" in refused(path, good)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b.npz"])
def test_names_that_no_file_can_have(name: str, good: Path) -> None:
    assert "check the path" in refused(Path(name), good)


def test_a_header_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path: Path, good: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("y.npy", "w") as to:
        to.write(b"\x93NUMPY\x02\x00" + (1 << 28).to_bytes(4, "little"))
        for _ in range(16):
            to.write(b" " * (1 << 24))
    tracemalloc.start()
    message = refused(path, good)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "its header cannot be read" in message
    assert peak < 1 << 22


def test_the_index_of_an_element_in_more_axes_than_numpy_1_has(tmp_path: Path) -> None:
    shape = "(" + "1, " * 40 + "2, 3)"
    for name, values in (("a", [0, 1, 2, 3, 4, 5]), ("b", [0, 1, 2, 3, 9, 5])):
        archive(tmp_path / f"{name}.npz", y=header(shape) + np.array(values, "f4").tobytes())
    verdict = compare_files(tmp_path / "a.npz", tmp_path / "b.npz").tensors[0]
    assert verdict.worst is not None
    assert verdict.worst.index == (0,) * 40 + (1, 1)
