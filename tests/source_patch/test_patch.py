"""Five lines behind each save: the right words, once, and gone again to the byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcheck.backends.source_patch.edit import Words, decode, difference, patched, unpatched
from tipcheck.backends.source_patch.places import places_for
from tipcheck.cli.main import main
from tipcheck.errors import UsageError

SEED = """\
import paddle


class Engine:
    def export(self):
        model, save_path = self.model, "inference"
        model = paddle.jit.to_static(
            model,
            input_spec=[
                paddle.static.InputSpec(
                    shape=[None] + self.config["Global"]["image_shape"],
                    dtype='float32')
            ])
        paddle.jit.save(model, save_path)
"""
BLOCK = """\
        from check_inference import verify_paddle_inference_correctness  # tipcheck patch
        layer = model
        path = save_path
        image_shape = self.config["Global"]["image_shape"]
        verify_paddle_inference_correctness(layer, path, image_shape)
"""

WITH_COMMENT = """\
import paddle as pd
pd.jit.save(n, 'o', input_spec=[pd.static.InputSpec([None, h, w],
    'float32', name='x')  # one
    ])
"""
TWO_NETS = """\
import paddle
net = paddle.jit.to_static(net, input_spec=specs)
other = paddle.jit.to_static(other, input_spec=more)
paddle.jit.save(net, 'o')
"""
FORWARD = """\
import paddle
net.forward = paddle.jit.to_static(net.forward, input_spec=specs)
paddle.jit.save(net, 'o')
"""
IN_A_DICT = """\
import paddle
from paddle.static import InputSpec as I
paddle.jit.save(n, 'o', input_spec=[{'image': I([None, 3, 8]), 'im_shape': I([1, 2])}])"""
TOKENS = """\
import paddle
paddle.jit.save(n, 'o', [paddle.static.InputSpec([None, 8], 'int64')])
"""


def patch(text: str, **words: str) -> str:
    """Patch a text; what was done is done once, and can be undone."""
    source = decode(text.encode(), "x.py")
    after, count = patched(source, Words(**words), "x.py")
    assert count > 0
    assert patched(after, Words(**words), "x.py") == (after, 0)
    assert unpatched(after) == (source, count)
    compile(after.text, "x.py", "exec")
    return after.text


def values(text: str, **words: str) -> list[str]:
    """Return the three values of the only check, and what they are called."""
    lines = patch(text, **words).splitlines()
    place = next(number for number, line in enumerate(lines) if "check_inference" in line)
    return [line.strip() for line in lines[place + 1 : place + 5]]


def test_the_lines_of_the_seed() -> None:
    assert patch(SEED) == SEED + BLOCK


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import paddle\npaddle.jit.save(net, 'out')\n", ["net", "'out'", "None"]),
        ("from paddle.jit import save as s\ns(net, 'o')\n", ["net", "'o'", "None"]),
        (
            "from paddle import jit\njit.save(layer=a.b, path=f'{p}/x')\n",
            ["a.b", "f'{p}/x'", "None"],
        ),
        ("import paddle.jit as j\nj.api.save(net, path='o')\n", ["net", "'o'", "None"]),
        (
            "import paddle as pd\npd.jit.save(n, 'o', [pd.static.InputSpec([-1, 3, 224, 224])])\n",
            ["n", "'o'", "[3, 224, 224]"],
        ),
        (WITH_COMMENT, ["n", "'o'", "[h, w]"]),
        (TWO_NETS, ["net", "'o'", "specs"]),
        (FORWARD, ["net", "'o'", "specs"]),
        (IN_A_DICT, ["n", "'o'", "[{'image': I([None, 3, 8]), 'im_shape': I([1, 2])}]"]),
        (TOKENS, ["n", "'o'", "[paddle.static.InputSpec([None, 8], 'int64')]"]),
    ],
)
def test_finds_layer_path_and_spec(text: str, expected: list[str]) -> None:
    names = ("layer", "path", "image_shape")
    told = [f"{name} = {value}" for name, value in zip(names, expected, strict=True)]
    assert values(text)[:3] == told


def test_the_users_words_are_stronger() -> None:
    told = values(SEED, layer="self.net", path="'there'", image_shape="[3, 8, 8]")
    assert told[:3] == ["layer = self.net", "path = 'there'", "image_shape = [3, 8, 8]"]


def test_no_variable_of_the_script_is_overwritten() -> None:
    text = (
        "import paddle\ndef export(path, layer):\n    paddle.jit.save(net, path + '/x')\n"
        "    print(path)\n    return lambda: layer\n"
    )
    told = values(text)
    assert told[:2] == ["checked_layer = net", "checked_path = path + '/x'"]
    assert (
        told[3] == "verify_paddle_inference_correctness(checked_layer, checked_path, image_shape)"
    )


def test_no_global_becomes_local() -> None:
    text = "import paddle\npath = 'o'\ndef export(net):\n    paddle.jit.save(net, path)\n"
    assert values(text)[1] == "checked_path = path"


def test_statements_that_share_a_line() -> None:
    text = (
        "import paddle\nif a: paddle.jit.save(n, 'one'); print()\n"
        "paddle.jit.save(n, 'two'); paddle.jit.save(m, 'three')  # both\n"
        "for n in nets: paddle.jit.save(n, 'four')"
    )
    after = patch(text)
    assert after.count("verify_paddle_inference_correctness(") == 4
    assert "if a: paddle.jit.save(n, 'one'); print(); from check_inference" in after


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "ending"])
def test_line_ends_and_a_last_line_without_one(ending: str, tail: str) -> None:
    text = f"import paddle{ending}paddle.jit.save(a, 'b'){ending if tail else ''}"
    after = patch(text)
    assert after.count(ending) == after.count("\n")


def test_encodings_and_marks_stay() -> None:
    body = "# -*- coding: gbk -*-\nimport paddle\npaddle.jit.save(网, '路')\n"
    for data in (body.encode("gbk"), b"\xef\xbb\xbf" + SEED.encode()):
        source = decode(data, "x.py")
        after, count = patched(source, Words(), "x.py")
        assert count == 1
        assert unpatched(after)[0].encode() == data


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("print(1)\n", "has no paddle.jit.save"),
        ("import paddle\ndef f():\n    return paddle.jit.save(a, b)\n", "stands in a return"),
        ("import paddle\npaddle.jit.save(*what)\n", "cannot see which layer"),
        ("def f(:\n", "is no Python"),
    ],
)
def test_what_cannot_be_done_is_said(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        patched(decode(text.encode(), "x.py"), Words(), "x.py")


@given(st.lists(st.sampled_from([*SEED.splitlines(keepends=True)[:5], "\n", "# x\r\n", "\f\n"])))
def test_undoing_leaves_other_texts_alone(lines: list[str]) -> None:
    source = decode("".join(lines).encode(), "x.py")
    assert unpatched(source) == (source, 0)


def test_the_diff_is_one() -> None:
    source = decode(SEED.encode(), "x.py")
    told = difference(source, patched(source, Words(), "x.py")[0], "x.py")
    assert told.startswith("--- a/x.py\n+++ b/x.py\n")
    assert [line for line in told.splitlines() if line.startswith("-")] == ["--- a/x.py"]


def test_the_module_lies_where_a_package_is_found(tmp_path: Path) -> None:
    engine = tmp_path / "ppcls" / "engine"
    engine.mkdir(parents=True)
    for folder in (engine, engine.parent):
        (folder / "__init__.py").touch()
    assert places_for(engine / "engine.py") == [tmp_path]
    (tmp_path / ".git").mkdir()
    tools = tmp_path / "tools"
    tools.mkdir()
    assert places_for(tools / "export.py") == [tools, tmp_path]


SCRIPT = """\
import sys

import paddle


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.f = paddle.nn.Linear(12, 3)

    def forward(self, x):
        y = self.f(x.flatten(1))
        wrong = len(sys.argv) > 1 and not paddle.in_dynamic_mode()
        return {"b": y, "a": [y * 2 + 1 if wrong else y * 2]}


net = Net()
net.eval()
spec = [paddle.static.InputSpec([None, 3, 2, 2], "float32", "x")]
paddle.jit.save(net, "out/net", input_spec=spec)
print("done")
"""


@pytest.mark.paddle
def test_a_patched_script_checks_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "export.py"
    script.write_text(SCRIPT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["patch", "--dry-run", "export.py"]) == 0
    assert script.read_text("utf-8") == SCRIPT
    assert main(["patch", "export.py"]) == 0
    assert "+image_shape = spec" in capsys.readouterr().out
    right, wrong = (
        subprocess.run(
            [sys.executable, "export.py", *arguments], capture_output=True, text=True, check=False
        )
        for arguments in ([], ["wrong"])
    )
    assert right.returncode == 0, right.stderr
    assert "2 outputs of Paddle Inference agree with the layer" in right.stdout
    assert wrong.returncode == 1
    assert "output 0 of 2: 6 of 6 elements differ; the worst at [" in wrong.stderr
    assert "done" not in wrong.stdout
    assert main(["patch", "--undo", "export.py"]) == 0
    assert script.read_text("utf-8") == SCRIPT
    assert not (tmp_path / "check_inference.py").exists()


def test_the_command_says_what_to_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.py").write_text("print(1)\n", encoding="utf-8")
    wrong = (["patch"], ["patch", "no.py"], ["patch", "x.py"], ["patch", "x.py", "--layer", "a b"])
    for argv in wrong:
        assert main(argv) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_paddle_that_comes_from_a_module_imported_whole_is_seen() -> None:
    text = b"from common import *\npaddle.jit.save(net, 'o')\nother.jit.save(net, 'o')\n"
    source = decode(text, "x.py")
    after, count = patched(source, Words(), "x.py")
    assert count == 1
    assert unpatched(after)[0].encode() == text
