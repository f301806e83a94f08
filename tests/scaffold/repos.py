"""A model repo without Paddle, whose four scripts really do what their options say."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tipcheck

if TYPE_CHECKING:
    from types import ModuleType

TRAIN = """\
import argparse, os, sys
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
parser.add_argument("--data-path", default="/data/full")
parser.add_argument("-e", "--epochs", type=int, default=90)
parser.add_argument("--output-dir", default="./output")
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--pretrained", default=None)
parser.add_argument("--test-only", action="store_true")
parser.add_argument("--amp_level", choices=["O1", "O2"])
parser.add_argument("--pact_quant", action="store_true")
parser.add_argument("extra", nargs="*")

if __name__ == "__main__":
    options = parser.parse_args()
    assert options.device == "cpu" and os.path.isdir(options.data_path), options
    if options.test_only:
        assert open(options.pretrained).read() in ("weights", "weights and clipping values")
    else:
        os.makedirs(options.output_dir, exist_ok=True)
        with open(os.path.join(options.output_dir, "latest.pdparams"), "w") as file:
            file.write("weights and clipping values" if options.pact_quant else "weights")
"""
EXPORT = """\
import os
from options import parse
if __name__ == "__main__":
    options = parse()
    assert os.path.exists(options.pretrained), "no weights"
    with open(os.path.join(options.save_inference_dir, "inference.pdmodel"), "w") as file:
        file.write("quantize_linear" if "clipping" in open(options.pretrained).read() else "conv2d")
"""
OPTIONS = """\
import argparse
def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pretrained", type=str)
    parser.add_argument("--save-inference-dir")
    parser.add_argument("--device", default="gpu")
    return parser.parse_args()
"""
INFER = """\
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--use-gpu", default="True")
parser.add_argument("--batch-size", type=int, default=1)
parser.add_argument("--model-dir")
parser.add_argument("--img-path", default="./images/demo.jpg")
parser.add_argument("--benchmark")
if __name__ == "__main__":
    options = parser.parse_args()
    assert os.path.exists(options.model_dir + "/inference.pdmodel"), "no model"
    assert options.use_gpu == "False" and os.path.exists(options.img_path)
"""
TREE = {
    "test_tipc/README.md",
    "test_tipc/common_func.sh",
    "test_tipc/configs/tiny/train_amp_infer_python.txt",
    "test_tipc/configs/tiny/train_infer_python.txt",
    "test_tipc/configs/tiny/train_pact_infer_python.txt",
    "test_tipc/docs/test_train_amp_inference_python.md",
    "test_tipc/docs/test_train_inference_python.md",
    "test_tipc/docs/test_train_pact_inference_python.md",
    "test_tipc/prepare.sh",
    "test_tipc/test_train_inference_python.sh",
}


def make_repo(folder: Path) -> Path:
    """Write the repo and return its folder."""
    files = {
        "train.py": TRAIN,
        "tools/export_model.py": EXPORT,
        "tools/options.py": OPTIONS,
        "deploy/inference_python/infer.py": INFER,
        "images/demo.jpg": "a picture",
    }
    root = folder / "tiny"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return root


def call(module: ModuleType, *arguments: object) -> int:
    """Run a command as its command line would."""
    parser = argparse.ArgumentParser()
    module.configure(parser)
    code: int = module.run(parser.parse_args([str(argument) for argument in arguments]))
    return code


def with_tipcheck(folder: Path) -> dict[str, str]:
    """Return an environment in which a shell finds this tipcheck."""
    folder.mkdir(parents=True, exist_ok=True)
    command = folder / "tipcheck"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tipcheck "$@"\n')
    command.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{folder}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": str(Path(tipcheck.__file__).parents[1]),
    }


def tree_of(root: Path) -> set[str]:
    """Return the files in a repo's test_tipc."""
    return {
        path.relative_to(root).as_posix()
        for path in (root / "test_tipc").rglob("*")
        if path.is_file()
    }
