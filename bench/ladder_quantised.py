"""Writes the quantised model of the sweep: ``python bench/ladder_quantised.py FOLDER``.

A small convolutional net, calibrated and saved by ``tipcheck.quant`` in both export formats.
"""

from __future__ import annotations

import sys
from pathlib import Path

import paddle
from paddle import nn

from tipcheck import quant


def main() -> None:
    """Quantise and save."""
    folder = Path(sys.argv[1])
    paddle.seed(1)
    net = nn.Sequential(
        nn.Conv2D(3, 16, 3, padding=1),
        nn.BatchNorm2D(16),
        nn.ReLU(),
        nn.Conv2D(16, 16, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2D(4),
        nn.Flatten(),
        nn.Linear(256, 10),
    )
    images = paddle.randn([16, 3, 24, 24])
    model = quant.quantise(net)
    quant.calibrate(model, [images], "quantile")
    spec = [paddle.static.InputSpec([None, 3, 24, 24], "float32", "image")]
    for form in ("json", "pdmodel"):
        quant.save(model, str(folder / form / "inference"), spec, inputs=[images], format=form)


if __name__ == "__main__":
    main()
