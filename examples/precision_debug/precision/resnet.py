"""ResNet50 of ``paddle.vision``, exported in one of the two formats.

    python -m precision.resnet FOLDER

In a process of its own: FLAGS_enable_pir_api=0, which makes the older format, is read when Paddle
is imported.
"""

from __future__ import annotations

import sys
from pathlib import Path

import paddle

from precision.samples import normalised, scene

SEED = 50


def make() -> paddle.nn.Layer:
    """Make the network: weights from a seed, the statistics of its BatchNorms from images.

    Without these statistics the values grow with every block, and the largest hide the others.
    """
    paddle.seed(SEED)
    net = paddle.vision.models.resnet50()
    for parent in list(net.sublayers(include_self=True)):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, paddle.nn.BatchNorm2D):
                # Momentum 0: the statistics become those of the next batch.
                norm = paddle.nn.BatchNorm2D(layer.weight.shape[0], momentum=0.0)
                parent.add_sublayer(name, norm)
    images = [scene(number, 160) for number in range(100, 104)]
    net.train()
    with paddle.no_grad():
        net(paddle.to_tensor(normalised(images, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])))
    net.eval()
    return net


def main(folder: Path) -> None:
    """Export it."""
    paddle.set_device("cpu")
    folder.mkdir(parents=True, exist_ok=True)
    spec = [paddle.static.InputSpec([None, 3, 224, 224], "float32", "image")]
    paddle.jit.save(make(), str(folder / "inference"), input_spec=spec)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
