"""The listings of the tutorial that examples/image_retrieval comes from, run as they are printed.

Only sizes are changed: a small archive in the place of CIFAR-10, few batches. What a listing leaves
out (`train_step`) is supplied. The text is not part of this repository: without it these tests are
skipped; the example and its page, which have all of it in their own words, are tested elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.examples import archives

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("TIPCHECK_SHARED") or ROOT.parent / "shared")
TEXTS = sorted((SHARED / "seeds").glob("002_*.txt"))

pytestmark = [
    pytest.mark.paddle,
    pytest.mark.slow,
    pytest.mark.skipif(not TEXTS, reason="the tutorial's text is not here"),
]

# What is changed in the listings that belong together, and how often it stands there.
SMALLER = (
    ("import matplotlib.pyplot as plt\n", "", 1),  # imported there, and never used
    ("Cifar10(mode=", "Cifar10(data_file='small.tar.gz', download=False, mode=", 2),
    ("(50000, ", "(100, ", 2),
    ("(10000, ", "(20, ", 2),
    ("randint(0, 50000, ", "randint(0, 100, ", 1),
    ("num_batchs=1000)", "num_batchs=2)", 1),
    ("epoch_num = 10\n", "epoch_num = 2\n", 1),
    ("batch_id % 500 == 0", "batch_id % 1 == 0", 1),
)
STORY = (7, 9, 10, 11, 12, 14, 17, 18, 20, 23, 31, 32)
SHELL = (0, 1, 2, 3, 4, 5, 6)
PRINTED = (8, 13, 19, 21)
# Each alone: what goes before it, and what is asked afterwards.
NET = "import paddle\nfrom paddle.nn import Layer\nfrom paddle.jit import to_static\n"
NET += "from paddle.static import InputSpec\n"
X, Y = "paddle.rand([4, 10])", "paddle.rand([3])"
ALONE: dict[int, tuple[str, str]] = {
    15: ("", "print(float(abs(paddle.jit.load('./net')(x, y) - out).max()) < 1e-6)"),
    16: ("", "print(float(abs(paddle.jit.load('./net')(x, y) - out).max()) < 1e-6)"),
    24: ("", "print(x.shape == (-1, 784), label.shape == (-1, 1))"),
    25: ("", "print(x_spec.shape == (2, 2), x_spec.name == 'x')"),
    26: ("", "print(x_spec.shape == (2, 2), x_spec.name == 'x')"),
    27: ("", f"print(paddle.jit.load('./simple_net')({X}, {Y}).shape == [4, 3])"),
    28: (
        f"{NET}train_reader, steps = None, []\ndef train_step(net, reader): steps.append(net)\n",
        f"print(len(steps) == 10, paddle.jit.load('./simple_net')({X}, {Y}).shape == [4, 3])",
    ),
    29: (
        NET,
        (
            "net = SimpleNet()\npaddle.jit.save(net, 'of_list')\n"
            f"print(paddle.jit.load('of_list')({X}, {Y}).shape == [4, 3])"
        ),
    ),
    30: (
        NET,
        # The second save has replaced the first.
        f"print(float(paddle.jit.load('./simple_net')({X} - 0.5).min()) >= 0)",
    ),
}
WRONG = 22


def listings() -> list[str]:
    text = TEXTS[0].read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("listings")
    archives.official(folder / "small.tar.gz", archives.arrays())
    found = listings()
    story = "\n".join(found[number] for number in STORY)
    for old, new, times in SMALLER:
        assert story.count(old) == times, old
        story = story.replace(old, new)
    story += "print('parameters', model_info)\nshow_collage(examples).save('found.png')\n"
    programs = {"story": story}
    for number, (before, after) in ALONE.items():
        programs[f"listing {number}"] = f"{before}{found[number]}\n{after}\n"
    programs["wrong"] = found[WRONG]
    programs["put right"] = (
        found[WRONG].replace("shape=[None, 3]", "shape=[None, 10]")
        + f"print(net, paddle.jit.load('simple_net')({X}, {Y}).shape == [4, 3])\n"
    )
    cases: list[dict[str, Any]] = []
    for name, program in programs.items():
        own = folder / name.replace(" ", "_")
        own.mkdir()
        (own / "small.tar.gz").symlink_to(folder / "small.tar.gz")
        (own / "program.py").write_text(program, encoding="utf-8")
        cases.append({"argv": ["program.py"], "cwd": str(own)})
    done = subprocess.run(
        [sys.executable, ROOT / "tests/examples/forked.py"],
        input=json.dumps(cases), capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    return {
        name: result | {"files": sorted(path.name for path in Path(case["cwd"]).iterdir())}
        for name, result, case in zip(programs, results, cases, strict=True)
    }


def test_every_listing_is_accounted_for() -> None:
    found = listings()
    accounted = [*STORY, *SHELL, *PRINTED, *ALONE, WRONG]
    assert sorted(accounted) == list(range(len(found)))
    assert all(found[number].split()[0] in ("conda", "activate") for number in SHELL)


def test_the_listings_that_belong_together_run_through(told: dict[str, dict[str, Any]]) -> None:
    story = told["story"]
    assert story["status"] == 0, story["err"]
    assert story["out"].count("start training") == 2
    assert (
        len(re.findall(r"^epoch: \d, batch_id: \d, loss is: \d", story["out"], re.MULTILINE)) == 8
    )
    assert "Total params: 94,280" in story["out"]
    assert "parameters {'total_params': " in story["out"]
    assert {"found.png", "model.json", "model.pdiparams"} <= set(story["files"])


@pytest.mark.parametrize("number", ALONE)
def test_a_listing_alone_does_what_it_says(told: dict[str, dict[str, Any]], number: int) -> None:
    result = told[f"listing {number}"]
    assert result["status"] == 0, result["err"]
    assert set(result["out"].splitlines()[-1].split()) == {"True"}


def test_the_listing_with_a_spec_of_width_3_is_refused(told: dict[str, dict[str, Any]]) -> None:
    wrong = told["wrong"]
    assert wrong["status"] == 1
    assert "But receiving the [1]dimension of Input(X) is [3]" in wrong["err"]
    assert "simple_net.json" not in wrong["files"]
    right = told["put right"]
    assert right["status"] == 0, right["err"]
    assert right["out"].splitlines()[-1] == "None True"
