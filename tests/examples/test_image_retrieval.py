"""The scripts of examples/image_retrieval with real Paddle, on small generated data."""

from __future__ import annotations

import csv
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.examples import archives

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "examples" / "image_retrieval"
RECIPE = ["--epochs=3", "--batches=6"]

pytestmark = [pytest.mark.paddle, pytest.mark.slow]


class Repository:
    """A copy of the example and what one types in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("FLAGS_")}
        self.env["OMP_NUM_THREADS"] = "1"

    def type(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv, cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip

    def python(self, *argv: str, **env: str) -> str:
        done = self.type(sys.executable, *argv, **env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def forked(self, *commands: list[str]) -> list[dict[str, Any]]:
        """Run several scripts in children of one process that has imported Paddle."""
        cases = [{"argv": command, "cwd": str(self.folder)} for command in commands]
        done = subprocess.run(
            [sys.executable, ROOT / "tests/examples/forked.py"],
            input=json.dumps(cases), cwd=self.folder, env=self.env, capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
        return found

    def losses(self, folder: str) -> list[float]:
        with (self.folder / folder / "losses.csv").open() as stream:
            rows = list(csv.DictReader(stream))
        assert [int(row["step"]) for row in rows] == list(range(len(rows)))
        return [float(row["loss"]) for row in rows]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    target = tmp_path_factory.mktemp("example") / "image_retrieval"
    made = [name.rstrip("/") for name in (HERE / ".gitignore").read_text().split()]
    shutil.copytree(HERE, target, ignore=shutil.ignore_patterns(*made))
    return Repository(target)


@pytest.fixture(scope="module")
def ran(repository: Repository) -> str:
    """Run it all, as small as it gets; return what was printed."""
    return repository.python("run.py", "--lite", *RECIPE)


def size_of(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


# --- all of it ----------------------------------------------------------------------------------


def test_one_command_does_it_all(repository: Repository, ran: str) -> None:
    assert "1,000 training and 1,000 test images (generated images, not CIFAR-10)" in ran
    assert "Total params: 94,280" in ran
    assert "[[10, 3, 32, 32]]" in ran
    output = repository.folder / "output/lite"
    sizes = {path.name: size_of(path) for path in output.glob("*.png")}
    assert sizes == {
        "losses.png": (960, 420),
        "neighbours_dygraph.png": (748, 680),
        "neighbours_loaded.png": (748, 680),
        "samples.png": (340, 340),
    }
    assert sorted(path.name for path in (output / "exported").iterdir()) == [
        "model.json",
        "model.pdiparams",
    ]
    assert (output / "report.md").read_text().strip() in ran


def test_both_trainings_print_and_write_the_same_losses(repository: Repository, ran: str) -> None:
    losses = repository.losses("output/lite/dygraph")
    assert len(losses) == 18
    assert len(set(losses)) == 18
    assert repository.losses("output/lite/to_static") == pytest.approx(losses, abs=1e-5)
    printed = {
        name: re.findall(rf"\[{name}\] epoch: (\d), batch_id: (\d+), loss is: ([\d.]+)", ran)
        for name in ("dygraph", "to_static")
    }
    assert [words[:2] for words in printed["dygraph"]] == [("0", "0"), ("1", "0"), ("2", "0")]
    for found in printed.values():
        given = [float(words[2]) for words in found]
        assert given == pytest.approx([losses[0], losses[6], losses[12]], abs=1e-5)


def test_the_results_are_those_of_the_files(repository: Repository, ran: str) -> None:
    results = json.loads((repository.folder / "output/lite/results.json").read_text())
    assert results["problems"] == []
    assert results["agreement"]["steps"] == 18
    assert results["recipe"] == {
        "epochs": 3, "batches": 6, "lr": 1e-4, "temperature": 0.2, "seed": 0,
    }  # fmt: skip
    assert len(results["embeddings"]) == 6
    assert results["embeddings"]["eager"] == 0
    assert all(apart <= 1e-5 for apart in results["embeddings"].values())
    commands = [
        ["retrieve.py", "--data-path=lite_data", f"--model=output/lite/{model}", *words]
        for model, *words in (
            ["dygraph", "--picture=found.png"],
            ["to_static", "--engine=to_static"],
            ["exported"],
            ["exported", "--engine=inference"],
        )
    ]
    found = repository.forked(*commands)
    for number, (told, how) in enumerate(
        zip(found, ["dygraph", "to_static", "jit.load", "Paddle Inference"], strict=True)
    ):
        assert told["status"] == 0, told["err"]
        names = list(results["retrieval"])
        expected = results["retrieval"][names[1] if number == 0 else names[2]]
        share = f"precision@10: {expected['precision@10']:.4f} ({how}, 1,000 queries, generated"
        assert share in told["out"]
    one, two = (
        repository.folder / path for path in ("found.png", "output/lite/neighbours_dygraph.png")
    )
    assert one.read_bytes() == two.read_bytes()


# The forward pass and the loss once more, in numpy, from the weights in the file.
BY_HAND = """
import numpy as np, paddle
from numpy.lib.stride_tricks import sliding_window_view
from pathlib import Path
from retrieval import data, model, pairs, training

def conv(x, w, b):
    windows = sliding_window_view(x, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    return np.maximum(np.einsum("ncijxy,ocxy->noij", windows, w) + b[:, None, None], 0)

def embed(x, w):
    for n in (1, 2, 3):
        x = conv(x, w[f"conv{n}.weight"], w[f"conv{n}.bias"])
    x = x.mean(axis=(2, 3)) @ w["fc1.weight"] + w["fc1.bias"]
    return x / np.sqrt((x * x).sum(axis=1, keepdims=True))

images = data.load(Path("lite_data"))
batch = next(pairs.pairs(images, 1, seed=0, epoch=0)).astype(np.float64)
net = model.build(to_static=False, seed=0)
w = {name: value.numpy().astype(np.float64) for name, value in net.state_dict().items()}
assert sum(value.size for value in w.values()) == 94280
logits = embed(batch[0], w) @ embed(batch[1], w).T / 0.2
by_hand = (np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)).mean()
print("loss", by_hand, training.read_losses(Path("output/lite/dygraph"))[0])
"""


def test_the_first_loss_is_the_one_of_numpy(repository: Repository, ran: str) -> None:
    words = repository.python("-c", BY_HAND).split()
    assert float(words[1]) == pytest.approx(float(words[2]), abs=1e-5)


BY_PADDLE = """
import sys
from pathlib import Path
import numpy as np
import paddle.vision.transforms as T
from paddle.vision.datasets import Cifar10
from retrieval.data import scale
from retrieval.official import read_official
ours = read_official(Path("small.tar.gz"))
transform = T.Compose([T.Transpose((2, 0, 1))])
for split in ("train", "test"):
    theirs = Cifar10("small.tar.gz", mode=split, transform=transform, download=False)
    x = np.zeros((len(theirs), 3, 32, 32), dtype="float32")
    for i in range(len(theirs)):
        image, label = theirs[i]
        x[i] = image / 255.
        assert ours[f"{split}_labels"][i] == label
    assert np.array_equal(scale(ours[f"{split}_images"]), x)
    print(len(theirs))
"""


def test_paddle_reads_the_official_archive_alike(repository: Repository) -> None:
    archives.official(repository.folder / "small.tar.gz", archives.arrays())
    (repository.folder / "by_paddle.py").write_text(BY_PADDLE)
    (told,) = repository.forked(["by_paddle.py"])
    assert told["out"].split() == ["100", "20"], told["err"]


def test_the_demo_hands_its_words_on(repository: Repository) -> None:
    done = repository.type("bash", "demo.sh", "--help", PYTHON=sys.executable)
    assert done.returncode == 0
    assert "usage: run.py" in done.stdout
    assert "--lite" in done.stdout


def test_the_older_format_is_exported_loaded_and_searched_with(
    repository: Repository, ran: str
) -> None:
    folder = "output/older"
    older = {"FLAGS_enable_pir_api": "0"}
    words = ["--pretrained=output/lite/to_static", f"--save-inference-dir={folder}"]
    printed = repository.python("export.py", *words, **older)
    assert f"exported {folder}/model.pdmodel" in printed
    search = ["retrieve.py", "--data-path=lite_data", f"--model={folder}", "--engine=inference"]
    (now,) = repository.forked(search)
    results = json.loads((repository.folder / "output/lite/results.json").read_text())
    share = [*results["retrieval"].values()][2]["precision@10"]
    assert f"precision@10: {share:.4f}" in now["out"], now["err"]
    # A new export in the other format takes its place.
    (again,) = repository.forked(["export.py", *words])
    assert f"exported {folder}/model.json" in again["out"]
    assert not (repository.folder / folder / "model.pdmodel").exists()


# --- interrupted --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["dygraph", "to_static"])
def test_a_killed_training_goes_on_as_if_nothing_had_happened(
    repository: Repository, ran: str, how: str
) -> None:
    folder = f"output/killed_{how}"
    words = ["train.py", "--data-path=lite_data", *RECIPE, f"--output-dir={folder}"]
    words += ["--print-every=1", *(["--to_static"] if how == "to_static" else [])]
    with subprocess.Popen(
        [sys.executable, *words], cwd=repository.folder, env=repository.env,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("epoch: 1, batch_id: 2,"):
                process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert len(repository.losses(folder)) == 6
    (resumed,) = repository.forked([*words, f"--resume={folder}"])
    assert resumed["status"] == 0, resumed["err"]
    assert "1 epochs of 3 are done" in resumed["out"]
    assert "epoch: 1, batch_id: 0" in resumed["out"]
    assert "epoch: 0," not in resumed["out"]
    assert repository.losses(folder) == repository.losses(f"output/lite/{how}")
    weights = [
        repository.folder / name / "latest.pdparams" for name in (folder, f"output/lite/{how}")
    ]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_all_of_it_goes_on_too(repository: Repository, ran: str) -> None:
    target = repository.folder / "output/again"
    shutil.copytree(repository.folder / "output/lite", target)
    shutil.rmtree(target / "to_static")
    printed = repository.python(
        "run.py", "--data-path=lite_data", "--output-dir=output/again", "--resume", *RECIPE
    )
    assert "[dygraph] trained 0 steps" in printed
    assert "[to_static] trained 18 steps" in printed
    before = json.loads((repository.folder / "output/lite/results.json").read_text())
    assert json.loads((target / "results.json").read_text()) == before


# --- what is refused ----------------------------------------------------------------------------

TRAIN = ["train.py", "--data-path=lite_data", *RECIPE, "--output-dir=output/refused"]
FIND = ["retrieve.py", "--data-path=lite_data"]


@pytest.fixture(scope="module")
def refusals(repository: Repository, ran: str) -> dict[str, dict[str, Any]]:
    """Type all that cannot work, in one Paddle process."""
    bad = repository.folder / "bad"
    (bad / "empty").mkdir(parents=True)
    (bad / "file").write_text("text")
    (bad / "broken.pdparams").write_bytes(b"\x80\x04 no checkpoint")
    (bad / "list.pdparams").write_bytes(pickle.dumps([1, 2]))
    for name, program in (("export", "{}"), ("other", "")):
        (bad / name).mkdir()
        (bad / name / "model.json").write_text(program)
        (bad / name / "model.pdiparams").write_text("no weights")
    make = (
        "import paddle\n"
        "net = paddle.nn.Linear(3, 3)\n"
        "paddle.save(net.state_dict(), 'bad/linear.pdparams')\n"
        "net = paddle.nn.Sequential(paddle.nn.Flatten(), paddle.nn.Linear(3072, 5))\n"
        "spec = [paddle.static.InputSpec([None, 3, 32, 32], 'float32', 'image')]\n"
        "paddle.jit.save(net, 'bad/other/model', input_spec=spec)\n"
        "weights = paddle.load('output/lite/dygraph/latest.pdparams')\n"
        "weights['fc1.bias'] = weights['fc1.bias'] + float('nan')\n"
        "paddle.save(weights, 'bad/nan.pdparams')\n"
    )
    (repository.folder / "make.py").write_text(make)
    made, *found = repository.forked(["make.py"], *(words for words, _, _ in REFUSED))
    assert made["status"] == 0, made["err"]
    return {" ".join(words): told for (words, _, _), told in zip(REFUSED, found, strict=True)}


REFUSED: list[tuple[list[str], int, str]] = [
    (["prepare_data.py", "--archive=bad/broken.pdparams"], 1, "is damaged or no cifar-10"),
    (["train.py", "--data-path=nowhere"], 1, "the data folder nowhere does not exist: make it"),
    (["train.py", "--data-path=bad/empty"], 1, "bad/empty is empty or holds something else"),
    ([*TRAIN, "--output-dir=bad/file"], 1, "--output-dir bad/file is a file, not a folder"),
    ([*TRAIN, "--resume=nowhere"], 1, "the checkpoint nowhere does not exist"),
    ([*TRAIN, "--resume=bad/broken.pdparams"], 1, "is no Paddle checkpoint, or is damaged"),
    ([*TRAIN, "--resume=output/lite/dygraph/latest.pdparams"], 1, "is no state of a training"),
    ([*TRAIN, "--resume=output/lite/dygraph", "--lr=0.1"], 1, "was trained with lr=0.0001, not"),
    ([*TRAIN, "--resume=output/lite/dygraph", "--seed=4"], 1, "trained with seed=0, not seed=4"),
    ([*TRAIN, "--resume=output/lite/dygraph", "--to_static"], 1, "with to_static=False, not to_"),
    ([*TRAIN, "--resume=output/lite/dygraph", "--epochs=2"], 1, "has 3 epochs already, more than"),
    ([*TRAIN, "--lr=1e38"], 1, "the loss is nan in epoch 0, batch 1: lower --lr"),
    ([*TRAIN, "--epochs=0"], 2, "'0' is not a whole number of at least 1"),
    ([*TRAIN, "--lr=-1"], 2, "'-1' is not a number above 0"),
    ([*TRAIN, "--temperature=nan"], 2, "'nan' is not a number above 0"),
    ([*TRAIN, "--seed=-1"], 2, "is not a whole number from 0"),
    (["export.py", "--pretrained=nowhere"], 1, "the checkpoint nowhere does not exist"),
    (["export.py", "--pretrained=bad/empty"], 1, "bad/empty/latest.pdparams does not exist"),
    (["export.py", "--pretrained=bad/linear.pdparams"], 1, "is a checkpoint of another model: "),
    (["export.py", "--pretrained=bad/list.pdparams"], 1, "is no Paddle checkpoint"),
    (["export.py", "--save-inference-dir=bad/file"], 1, "bad/file is a file, not a folder"),
    ([*FIND, "--model=nowhere"], 1, "--model nowhere does not exist"),
    ([*FIND, "--model=bad/empty"], 1, "bad/empty holds no exported model: expected model.json"),
    ([*FIND, "--model=bad/broken.pdparams"], 1, "is no Paddle checkpoint, or is damaged"),
    ([*FIND, "--model=bad/nan.pdparams"], 1, "answers with numbers that are not finite"),
    ([*FIND, "--model=bad/export"], 1, "bad/export/model.json cannot be used, it is damaged"),
    ([*FIND, "--model=bad/export", "--engine=inference"], 1, "cannot be used, it is damaged"),
    ([*FIND, "--model=bad/other"], 1, "is another model: it answers [2, 5], MyNet [2, 8]"),
    ([*FIND, "--model=bad/other", "--engine=inference"], 1, "it answers [2, 5], MyNet [2, 8]"),
    ([*FIND, "--model=output/lite/dygraph", "--neighbours=1000"], 2, "--neighbours=1000 of 1000"),
    ([*FIND, "--model=output/lite/dygraph", "--picture=no/x.png"], 1, "folder no does not exist"),
    (["run.py", "--data-path=nowhere"], 1, "the data folder nowhere does not exist"),
    (["run.py", "--output-dir=bad/file", "--lite"], 1, "bad/file is a file, not a folder"),
]


@pytest.mark.parametrize(
    ("words", "status", "message"), REFUSED, ids=[" ".join(words)[-60:] for words, _, _ in REFUSED]
)
def test_a_mistake_is_one_line(
    refusals: dict[str, dict[str, Any]], words: list[str], status: int, message: str
) -> None:
    told = refusals[" ".join(words)]
    assert told["status"] == status, told["out"] + told["err"]
    assert "Traceback" not in told["err"]
    lines = [line for line in told["err"].splitlines() if ": error: " in line]
    assert len(lines) == 1, told["err"]
    assert told["err"].rstrip().endswith(lines[0])
    assert message in lines[0]


def test_trainings_that_disagree_are_an_error(repository: Repository, ran: str) -> None:
    target = repository.folder / "output/apart"
    shutil.copytree(repository.folder / "output/lite", target)
    shutil.copytree(target / "to_static", target / "kept")
    (other,) = repository.forked(
        ["train.py", "--data-path=lite_data", *RECIPE, "--lr=2e-4", "--to_static",
         "--output-dir=output/apart/to_static"]
    )  # fmt: skip
    assert other["status"] == 0, other["err"]
    # The state says that the recipe was kept; the losses and weights are of the other one.
    shutil.copy(target / "kept/latest.pdstates", target / "to_static/latest.pdstates")
    judge = (
        "from pathlib import Path\n"
        "from retrieval import data, training\n"
        "import run\n"
        "recipe = training.Recipe(epochs=3, batches=6)\n"
        "found = run.judge(recipe, data.load(Path('lite_data')), Path('output/apart'))\n"
        "print(found['problems'], found['agreement'])\n"
    )
    (repository.folder / "judge.py").write_text(judge)
    (told,) = repository.forked(["judge.py"])
    assert told["status"] == 0, told["err"]
    assert "the losses differ by more than 1e-05 from step 1 on (epoch 0, batch 1)" in told["out"]


@pytest.mark.parametrize(
    "script", ["prepare_data.py", "train.py", "export.py", "retrieve.py", "run.py"]
)
def test_every_script_has_help(repository: Repository, script: str) -> None:
    assert f"usage: {script}" in repository.python(script, "--help")
