"""The options that a chain needs, and the names by which model repos call them: data.

A role is what a line of the 32-line layout is for. The names are plain (see ``Option.plain``) and
stand in the order in which they are preferred.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Role:
    """One option that a line of a config names.

    Attributes:
        name: what ``tipcheck init --key`` calls it.
        line: its line in the config.
        stage: the script that has the option: ``train``, ``export`` or ``infer``.
        about: what the option is for, in a few words.
        usual: how it is written where the script tells nothing.
        names: the plain names it goes by.
        needed: whether the chain cannot do without.
    """

    name: str
    line: int
    stage: str
    about: str
    usual: str
    names: tuple[str, ...]
    needed: bool = False


_DEVICE = ("device", "use-gpu", "use-cuda", "gpu", "place", "devices")
_BATCH = ("batch-size", "train-batch-size", "batchsize", "batch", "bs", "b")
_WEIGHTS = (
    "pretrained", "pretrained-model", "pretrain", "weights", "weight", "model-path", "params",
    "checkpoint", "checkpoints", "resume", "init-checkpoint", "ckpt", "params-path",
    "pretrained-path", "load",
)  # fmt: skip
_OUTPUT = (
    "output-dir", "save-dir", "output", "out", "out-dir", "save-model-dir", "save-path",
    "output-path", "checkpoint-dir", "work-dir", "model-save-dir", "save-model-path", "outdir",
    "save", "log-dir", "to",
)  # fmt: skip

ROLES: tuple[Role, ...] = (
    Role("train-device", 5, "train", "device of the training", "--use-gpu", _DEVICE),
    Role(
        "epochs", 6, "train", "number of epochs", "--epochs",
        (
            "epochs", "epoch", "num-epochs", "max-epochs", "max-epoch", "epoch-num", "num-epoch",
            "n-epochs", "total-epochs", "nepochs", "train-epochs", "iters", "max-iters",
        ),
    ),
    Role("output", 7, "train", "where the training writes", "--output-dir", _OUTPUT, needed=True),
    Role("batch-size", 8, "train", "batch size of the training", "--batch-size", _BATCH),
    Role("pretrained", 9, "train", "weights to start from", "--pretrained", _WEIGHTS, needed=True),
    Role(
        "data-path", 11, "train", "folder of the data", "--data-path",
        (
            "data-path", "data-dir", "data-root", "dataset-path", "dataset-dir", "dataset-root",
            "dataset", "data", "train-data", "root", "data-folder",
        ),
    ),
    Role(
        "save-inference", 20, "export", "where the export writes", "--save-inference-dir",
        ("save-inference-dir", "save-infer-dir", "inference-dir", "export-dir", *_OUTPUT),
        needed=True,
    ),
    Role(
        "export-weights", 21, "export", "weights to export", "--pretrained",
        (*_WEIGHTS, "model-dir", "model"), needed=True,
    ),
    Role("device", 28, "infer", "device of the inference", "--use-gpu", _DEVICE, needed=True),
    Role("infer-batch-size", 29, "infer", "batch size of the inference", "--batch-size", _BATCH),
    Role(
        "model-dir", 30, "infer", "folder of the exported model", "--model-dir",
        (
            "model-dir", "inference-dir", "infer-dir", "model-path", "inference-model-dir",
            "model-folder", "model-file-dir", "model", "inference-model",
        ),
        needed=True,
    ),
    Role(
        "images", 31, "infer", "input of the inference", "--img-path",
        (
            "img-path", "image-path", "image-file", "image-dir", "img-dir", "images", "image",
            "img", "infer-img", "infer-imgs", "input", "input-file", "input-path", "source",
            "data-path", "data-dir", "data-file", "video-file",
        ),
    ),
    Role("benchmark", 32, "infer", "log of the measured times", "--benchmark", ("benchmark",)),
)  # fmt: skip

EVAL_OPTIONS = ("test-only", "eval-only", "evaluate", "eval", "validate", "test")
AMP_OPTIONS = ("amp-level", "amp", "use-amp", "use-fp16", "fp16")
PACT_OPTIONS = ("pact-quant", "pact", "use-pact", "quant", "use-quant", "qat", "quantize")
SETTINGS_OPTIONS = (
    "opt", "opts", "override", "overrides", "cfg-options", "set-cfg", "set", "options", "o",
)  # fmt: skip
"""Options that change settings of a configuration file, as in ``-o Global.epochs=5``."""

SCRIPTS: dict[str, tuple[str, ...]] = {
    "train": (
        "train.py", "tools/train.py", "main.py", "run_train.py", "trainer.py", "tools/main.py",
        "scripts/train.py", "src/train.py",
    ),
    "export": (
        "tools/export_model.py", "export_model.py", "export.py", "tools/export.py",
        "deploy/export_model.py", "tools/export_inference_model.py", "scripts/export.py",
        "to_static.py",
    ),
    "infer": (
        "deploy/inference_python/infer.py", "deploy/python/infer.py", "deploy/infer.py",
        "infer.py", "tools/infer.py", "predict.py", "tools/predict.py", "inference.py",
        "deploy/python/predict.py", "deploy/predict.py", "scripts/infer.py",
    ),
    "eval": (
        "eval.py", "tools/eval.py", "val.py", "tools/val.py", "validate.py", "evaluate.py",
        "test.py", "tools/test.py",
    ),
}  # fmt: skip
"""Where model repos keep the scripts of each stage."""
