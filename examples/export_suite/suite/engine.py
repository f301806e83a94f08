"""Builds the model of a config, loads its weights if there are any, and exports it."""

import logging
import os
import random

import numpy as np
import paddle
from paddle.static import InputSpec

from suite import heads, nets, programs

logger = logging.getLogger("suite")


class Engine:
    """What a config describes."""

    def __init__(self, config, path):
        """Build the model."""
        self.config = config
        self.name = os.path.splitext(os.path.basename(path))[0]
        _set_up_logging()
        seed = config["Global"].get("seed", 2022)
        random.seed(seed)
        np.random.seed(seed)
        paddle.seed(seed)
        arch = dict(config["Arch"])
        kind = arch.pop("name")
        self.model = None
        if config["Global"].get("mode", "dynamic") == "dynamic":
            maker = getattr(nets, kind, None) or getattr(heads, kind, None)
            self.model = (maker or getattr(paddle.vision.models, kind))(**arch)
        weights = config["Global"].get("pretrained_model")
        if weights and os.path.exists(weights + ".pdparams"):
            self.model.set_state_dict(paddle.load(weights + ".pdparams"))
            logger.info("loaded %s", weights)
        else:
            logger.warning("%s: no weights given, they stay as they were made", self.name)

    def export(self):
        """Write the inference model."""
        save_dir = self.config["Global"].get("save_dir", "./inference")
        save_path = os.path.join(save_dir, self.name, "inference")
        os.makedirs(os.path.dirname(save_path), exist_ok=True)
        print(f"draws {random.random():.6f} {np.random.rand():.6f}")
        if self.model is None:
            programs.export(self.config["Arch"], save_path)
        else:
            self.model.eval()
            getattr(self, "_export_" + self.config["Export"]["how"])(save_path)
        print(f"then  {random.random():.6f} {np.random.rand():.6f} {float(paddle.rand([1])):.6f}")
        logger.info("%s is exported to %s", self.name, save_path)

    def _specs(self):
        return [_spec(item) for item in self.config["Export"].get("inputs", [])]

    def _export_converted(self, save_path):
        image_shape = self.config["Global"]["image_shape"]
        model = paddle.jit.to_static(
            self.model, input_spec=[InputSpec(shape=[None, *image_shape], dtype="float32")]
        )
        paddle.jit.save(model, save_path)

    def _export_with_spec(self, save_path):
        paddle.jit.save(self.model, save_path, input_spec=self._specs())

    def _export_full_graph(self, save_path):
        static = paddle.jit.to_static(self.model, input_spec=self._specs(), full_graph=True)
        paddle.jit.save(static, save_path)

    def _export_forward(self, save_path):
        self.model.forward = paddle.jit.to_static(
            self.model.forward, input_spec=self._specs(), full_graph=True
        )
        paddle.jit.save(self.model, save_path)

    def _export_called(self, save_path):
        static = paddle.jit.to_static(self.model, full_graph=True)
        static(paddle.randn([2, *self.config["Global"]["image_shape"]]))
        paddle.jit.save(static, save_path)

    def _export_decorated(self, save_path):
        paddle.jit.save(self.model, save_path)


def _spec(item):
    if "name" not in item:
        return {key: _spec(inner) for key, inner in item.items()}
    shape = [None if extent == -1 else extent for extent in item["shape"]]
    return InputSpec(shape, item.get("dtype", "float32"), item["name"])


def _set_up_logging():
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[%(levelname)s] %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.addHandler(logging.FileHandler("export.log", mode="w"))
        logger.setLevel(logging.INFO)
        logger.propagate = False
