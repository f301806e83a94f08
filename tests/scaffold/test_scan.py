"""What is read of scripts, and what is made of scripts that say little."""

from __future__ import annotations

from pathlib import Path

import pytest

from tipcheck.config_plans.scaffold.lines import write_configs
from tipcheck.config_plans.scaffold.look import Wishes, find_picture, look
from tipcheck.config_plans.scaffold.scan import Option, scan
from tipcheck.errors import UsageError


def put(root: Path, path: str, text: str) -> str:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, "utf-8")
    return path


def test_options_as_argparse_declares_them(tmp_path: Path) -> None:
    put(
        tmp_path,
        "train.py",
        "p.add_argument('-b', '--batch_size', default=4)\n"
        "p.add_argument('name')\n"
        "p.add_argument(NAME)\n"
        "p.add_argument('--on', action='store_true')\n"
        "p.add_argument('--off', action=argparse.BooleanOptionalAction)\n"
        "p.add_argument('--own', action=make())\n"
        "p.add_argument('--to', choices=('cpu', 'gpu'), default=pick())\n"
        "p.add_argument('--of', choices=range(3))\n"
        "functions[0]('--not')\n",
    )
    assert scan(tmp_path, "train.py").options == (
        Option("--batch_size", default=4),
        Option("--on", takes_value=False),
        Option("--off", takes_value=False),
        Option("--own"),
        Option("--to", choices=("cpu", "gpu")),
        Option("--of"),
    )


def test_options_as_paddle_suites_declare_them(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "add_arg('use_gpu', bool, True, 'help')\nadd_arg('n', int, default=3)\n")
    use_gpu, number = scan(tmp_path, "a.py").options
    assert (use_gpu.flag, use_gpu.default, use_gpu.plain) == ("--use_gpu", True, "use-gpu")
    assert use_gpu.prefers_gpu
    assert (number.flag, number.default) == ("--n", 3)


def test_options_by_a_short_name_of_the_declaring_function(tmp_path: Path) -> None:
    put(
        tmp_path,
        "a.py",
        "add = parser.add_argument\nadd('--epochs', required=True)\nother('--not')\n"
        "short: int = 3\nx.y = parser.add_argument\n",
    )
    assert scan(tmp_path, "a.py").options == (Option("--epochs", required=True),)


def test_options_of_click_typer_and_absl(tmp_path: Path) -> None:
    put(
        tmp_path,
        "a.py",
        "@click.option('--init-weights', '--weights', default='w')\n"
        "@click.option('--device', type=click.Choice(['cpu', 'gpu']))\n"
        "@click.option('--amp/--no-amp', default=False)\n"
        "@click.option('--fast', is_flag=True, type=make())\n"
        "def main(out: str = typer.Option('o', '--out'), n: int = typer.Option(3)): pass\n"
        "flags.DEFINE_string('data_dir', 'data', 'where')\nflags.DEFINE_flag(thing)\n"
        "option('-')\n",
    )
    script = scan(tmp_path, "a.py")
    assert {option.flag: option for option in script.options} == {
        "--init-weights": Option("--init-weights", default="w", also=("--weights",)),
        "--device": Option("--device", choices=("cpu", "gpu")),
        "--amp": Option("--amp", takes_value=False, default=False),
        "--fast": Option("--fast", takes_value=False),
        "--out": Option("--out"),
        "--data_dir": Option("--data_dir", default="data"),
    }
    weights = script.option(("weights",))
    assert weights is not None
    assert weights.flag == "--init-weights"


def test_what_a_script_needs_and_no_line_gives_is_told(tmp_path: Path) -> None:
    put(
        tmp_path,
        "train.py",
        "p.add_argument('-c', '--config', required=True)\n"
        "p.add_argument('-o', '--opt', nargs='+')\n"
        "p.add_argument('--epochs', required=True)\n",
    )
    notes = write_configs(look(tmp_path, Wishes())).notes
    needed = [note for note in notes if "does not start without" in note]
    assert len(needed) == 1
    assert "write it into the command: --train 'train.py --config=…'" in needed[0]
    assert any("takes settings by --opt" in note for note in notes)
    given = write_configs(look(tmp_path, Wishes(train="train.py --config a.yml"))).notes
    assert not any("does not start without" in note for note in given)


def test_the_example_of_the_project_is_understood(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "mobilenet_v3"
    found = look(example, Wishes(model_name="small"))
    configs = write_configs(found)
    lines = configs.texts["train_infer_python.txt"].splitlines()
    assert [lines[n - 1].partition(":")[0] for n in (6, 7, 8, 9, 11, 20, 21, 28, 30, 31, 32)] == [
        "--epochs", "--output-dir", "--batch-size", "--pretrained", "--data-path",
        "--save-inference-dir", "--pretrained", "--use-gpu", "--model-dir", "--img-path",
        "--benchmark",
    ]  # fmt: skip
    assert lines[9] == "train_model_name:latest.pdparams"
    assert "amp_train:train.py --amp_level=O2" in configs.texts["train_amp_infer_python.txt"]


def test_a_parser_in_a_module_of_its_own_is_found(tmp_path: Path) -> None:
    put(tmp_path, "tools/train.py", "import os\nfrom .inner import x\nfrom ..lib.args import get\n")
    put(tmp_path, "tools/inner.py", "import broken\nimport tools.train\nSAVE = 'out/last.pdparams'")
    put(tmp_path, "broken.py", "def (:\n")
    put(tmp_path, "lib/args/__init__.py", "p.add_argument('--epochs')")
    script = scan(tmp_path, "tools/train.py")
    assert [option.flag for option in script.options] == ["--epochs"]
    assert script.weights == ("last.pdparams",)


def test_endless_imports_end(tmp_path: Path) -> None:
    for number in range(40):
        put(tmp_path, f"m{number}.py", f"import m{number + 1}")
    assert scan(tmp_path, "m0.py").options == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def (:\n", r"a\.py:1: is not readable as Python"),
        ("x = 1\0", r"a\.py.* is not readable as Python"),
        ("(" * 5000, "is not readable as Python"),
        ("#" * (1024 * 1024 + 1), "too large"),
    ],
)
def test_what_is_no_python_is_told(tmp_path: Path, text: str, message: str) -> None:
    put(tmp_path, "a.py", text)
    with pytest.raises(UsageError, match=message):
        scan(tmp_path, "a.py")


def configs(root: Path, **wishes: object) -> tuple[list[str], str]:
    """Return the lines of the normal config, the first one at 1, and all notes."""
    repo = look(root, Wishes(gpu_list="-1").with_texts(dict(wishes)))  # type: ignore[arg-type]
    made = write_configs(repo)
    lines = ["", *made.texts["train_infer_python.txt"].splitlines()]
    return lines, "\n".join((*repo.notes, *made.notes))


def test_a_repo_that_says_nothing_gets_the_usual_names(tmp_path: Path) -> None:
    put(tmp_path, "train.py", "")
    put(tmp_path, "my_export_tool.py", "")
    put(tmp_path, "deploy/do_predict.py", "")
    lines, notes = configs(tmp_path, model_name="m")
    assert len(lines) == 33
    assert (lines[5], lines[11]) == ("null:null", "null:null")
    assert lines[7] == "--output-dir:./output/"
    assert lines[10] == "train_model_name:latest.pdparams"
    assert lines[17] == "eval:null"
    assert lines[22] == "norm_export:my_export_tool.py"
    assert lines[27:29] == ["inference:deploy/do_predict.py", "--use-gpu:False"]
    assert "train: train.py, no options seen" in notes
    assert "! the name of the weights" in notes
    assert "! train_amp_infer_python.txt left out" in notes
    assert "! no picture found" in notes


def test_a_repo_without_export_and_inference(tmp_path: Path) -> None:
    put(tmp_path, "train.py", "")
    lines, notes = configs(tmp_path)
    assert lines[22] == "norm_export:null"
    assert lines[27] == "inference:null"
    assert "! no export script found; name it with --export" in notes


def test_what_a_script_lacks_is_told_where_it_matters(tmp_path: Path) -> None:
    put(tmp_path, "train.py", "p.add_argument('--lr')\np.add_argument('--epochs', default='x')")
    put(tmp_path, "export.py", "p.add_argument('--opset')")
    put(
        tmp_path,
        "infer.py",
        "p.add_argument('--use-gpu', action='store_true')\n"
        "p.add_argument('--benchmark', action='store_true')",
    )
    lines, notes = configs(tmp_path)
    assert lines[8] == "null:null"
    assert lines[29] == lines[31] == lines[32] == "null:null"
    assert lines[6] == "--epochs:lite_train_lite_infer=5|whole_train_whole_infer=90"
    assert (
        "! train.py has no option seen for line 7 (where the training writes); the chain" in notes
    )
    assert "! --use-gpu of infer.py takes no value, so it cannot stand in line 28" in notes
    assert "\n--benchmark of infer.py takes no value, so it cannot stand in line 32" in notes


def test_words_of_device_options(tmp_path: Path) -> None:
    put(tmp_path, "train.py", "p.add_argument('--gpu', default='gpu')")
    put(tmp_path, "infer.py", "p.add_argument('--place')")
    lines, _ = configs(tmp_path, gpu_list="0|-1")
    assert (lines[5], lines[28]) == ("--gpu:gpu|cpu", "--place:gpu|cpu")
    repo = look(tmp_path, Wishes(gpu_list="0", keys={"device": "--use_cuda"}))
    assert "--use_cuda:True|False\n" in write_configs(repo).texts["train_infer_python.txt"]


def test_evaluation_by_a_script_of_its_own(tmp_path: Path) -> None:
    put(tmp_path, "train.py", "p.add_argument('--eval', type=bool)")
    put(tmp_path, "tools/eval.py", "p.add_argument('--device', default='gpu')")
    lines, _ = configs(tmp_path)
    assert lines[17] == "eval:tools/eval.py --device=cpu"


def test_pact_is_exported_as_it_was_trained_where_the_export_can(tmp_path: Path) -> None:
    put(tmp_path, "train.py", "p.add_argument('--amp', type=bool)\np.add_argument('--pact')")
    put(tmp_path, "export.py", "p.add_argument('--quant', action='store_true')")
    made = write_configs(look(tmp_path, Wishes(gpu_list="-1")))
    pact = made.texts["train_pact_infer_python.txt"]
    assert "pact_train:train.py --pact=True\n" in pact
    assert "norm_export:export.py --quant\n" in pact
    assert "amp_train:train.py --amp=True\n" in made.texts["train_amp_infer_python.txt"]


def test_a_config_that_was_asked_for_is_not_left_out_in_silence(tmp_path: Path) -> None:
    put(tmp_path, "train.py", "")
    repo = look(tmp_path, Wishes(configs=("amp",)))
    with pytest.raises(UsageError, match=r"no option seen to turn on amp.*--amp-args"):
        write_configs(repo)
    pact = look(tmp_path, Wishes(configs=("pact",), pact_args="--q"))
    assert list(write_configs(pact).texts) == ["train_pact_infer_python.txt"]


def test_a_module_is_a_command_too(tmp_path: Path) -> None:
    lines, _ = configs(tmp_path, train="-m my.train", model_name="m")
    assert lines[14] == "norm_train:-m my.train"


def test_pictures_with_demo_in_their_path_come_first(tmp_path: Path) -> None:
    put(tmp_path, "a.png", "")
    assert find_picture(tmp_path) == "a.png"
    put(tmp_path, "x/demo/b.jpg", "")
    put(tmp_path, "output/demo.jpg", "")
    put(tmp_path, "odd demo.jpg", "")
    put(tmp_path, "1/2/3/4/5/demo.jpg", "")
    assert find_picture(tmp_path) == "x/demo/b.jpg"


def test_a_folder_name_becomes_a_model_name(tmp_path: Path) -> None:
    for folder, name in (("my net (v2)", "my_net_v2"), ("模型", "model")):
        put(tmp_path / folder, "train.py", "")
        assert look(tmp_path / folder, Wishes()).model_name == name
