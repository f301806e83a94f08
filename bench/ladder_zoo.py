"""The models that the ladder is swept over: small enough to run, each with something of its own.

Every function is a factory as ``tipcheck verify bench/ladder_zoo.py:NAME`` takes it: it returns a
layer and its InputSpecs. Weights are random from the seed that the worker sets; normalisations get
statistics that keep the answers at a scale where errors show, as in a trained model.
"""

from __future__ import annotations

from typing import Any

import paddle
from paddle import nn
from paddle.nn import functional
from paddle.nn.quant.format import LinearDequanter, LinearQuanter

Made = tuple[Any, list[Any]]
_Spec = paddle.static.InputSpec


def _settled(layer: Any, *feeds: Any) -> Any:
    """Let every normalisation take over the statistics of one pass."""
    for part in layer.sublayers():
        if isinstance(part, nn.BatchNorm2D):
            part._momentum = 0.0  # noqa: SLF001 - Paddle has no public setter
    with paddle.no_grad():
        layer.train()
        layer(*feeds)
    layer.eval()
    return layer


def _picture(side: int, channels: int = 3) -> Any:
    return _Spec([None, channels, side, side], "float32", "image")


def mobilenet_v3() -> Made:
    """Depthwise convolutions, hard swish, squeeze and excitation."""
    layer = paddle.vision.models.mobilenet_v3_small()
    return _settled(layer, paddle.randn([4, 3, 96, 96])), [_picture(96)]


def resnet50() -> Made:
    """Deep, with shortcuts."""
    layer = paddle.vision.models.resnet50()
    return _settled(layer, paddle.randn([2, 3, 64, 64])), [_picture(64)]


class _ViT(nn.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2D(3, 48, 8, 8)
        self.place = self.create_parameter([1, 17, 48])
        self.token = self.create_parameter([1, 1, 48])
        block = nn.TransformerEncoderLayer(
            48, 4, 96, dropout=0.1, activation="gelu", normalize_before=True
        )
        self.blocks = nn.TransformerEncoder(block, 4, nn.LayerNorm(48))
        self.head = nn.Linear(48, 20)

    def forward(self, image: Any) -> Any:
        rows = self.patches(image).flatten(2).transpose([0, 2, 1])
        token = self.token.expand([rows.shape[0], -1, -1])
        rows = self.blocks(paddle.concat([token, rows], axis=1) + self.place)
        return self.head(rows[:, 0])


def vit() -> Made:
    """Attention over patches, layer norm, gelu."""
    return _ViT(), [_picture(32)]


class _Encoder(nn.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.1), 2)
        self.head = nn.Linear(32, 6)

    def forward(self, ids: Any, mask: Any) -> Any:
        hidden = self.words(ids)
        allowed = (mask.unsqueeze([1, 2]).astype("float32") - 1.0) * 1e9
        hidden = self.blocks(hidden, allowed)
        weight = mask.unsqueeze(-1).astype("float32")
        pooled = (hidden * weight).sum(1) / (weight.sum(1) + 1e-6)
        return functional.softmax(self.head(pooled)), hidden


def encoder() -> Made:
    """Embedding, additive mask of -1e9, masked mean."""
    ids = _Spec([None, None], "int64", "ids")
    return _Encoder(), [ids, _Spec([None, None], "int64", "mask")]


class _Recurrent(nn.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(60, 16)
        self.lstm = nn.LSTM(16, 24, num_layers=2, direction="bidirect")
        self.gru = nn.GRU(48, 16)
        self.head = nn.Linear(16, 5)

    def forward(self, ids: Any) -> Any:
        hidden, _ = self.lstm(self.words(ids))
        _, last = self.gru(hidden)
        return self.head(last[0])


def recurrent() -> Made:
    """LSTM in both directions, then GRU."""
    return _Recurrent(), [_Spec([None, None], "int64", "ids")]


class _Detector(nn.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(3, 16, 3, 4, 1), nn.BatchNorm2D(16), nn.ReLU(), nn.Conv2D(16, 16, 3, 2, 1)
        )
        self.boxes = nn.Conv2D(16, 4, 1)
        self.scores = nn.Conv2D(16, 3, 1)

    def forward(self, image: Any) -> Any:
        features = functional.relu(self.body(image))
        raw = self.boxes(features).flatten(2).transpose([0, 2, 1])[0]
        corner = functional.sigmoid(raw[:, :2]) * 40
        boxes = paddle.concat([corner, corner + functional.sigmoid(raw[:, 2:]) * 24], axis=1)
        scores = functional.softmax(self.scores(features).flatten(2).transpose([0, 2, 1])[0])
        best = scores.max(axis=1)
        best = best * 2.0 if best.max() > 0.5 else best + 0.1
        kept = paddle.vision.ops.nms(boxes, 0.4, best)
        rounds = paddle.zeros([1], "int64")
        while rounds < 3:
            best = best * 0.9
            rounds = rounds + 1
        return paddle.gather(boxes, kept), paddle.gather(best, kept), kept


def detector() -> Made:
    """Boxes, a branch and a loop on values, NMS: outputs whose length depends on the data."""
    layer = _Detector()
    layer.eval()
    return layer, [_Spec([1, 3, 64, 64], "float32", "image")]


class _MyNet(nn.Layer):  # type: ignore[misc]
    """The image search example of Paddle's own tutorial."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2D(3, 32, (3, 3), stride=2)
        self.conv2 = nn.Conv2D(32, 64, (3, 3), stride=2)
        self.conv3 = nn.Conv2D(64, 128, (3, 3), stride=2)
        self.pool = nn.AdaptiveAvgPool2D((1, 1))
        self.head = nn.Linear(128, 8)

    def forward(self, x: Any) -> Any:
        for conv in (self.conv1, self.conv2, self.conv3):
            x = functional.relu(conv(x))
        x = self.head(paddle.squeeze(self.pool(x), axis=[2, 3]))
        return x / paddle.norm(x, axis=1, keepdim=True)


def mynet() -> Made:
    """Ends in a division by its own norm."""
    return _MyNet(), [_picture(32)]


class _Whole(nn.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 16)
        self.head = nn.Linear(16, 12)

    def forward(self, ids: Any) -> Any:
        scores = self.head(self.words(ids).mean(axis=1))
        first, places = paddle.topk(scores, 3)
        return scores.argmax(axis=1), scores > 0, places, first, ids.shape[0] + ids.sum()


def whole_numbers() -> Made:
    """Outputs of integers and booleans."""
    return _Whole(), [_Spec([None, None], "int64", "ids")]


class _Nested(nn.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(8, 12)
        self.right = nn.Linear(6, 12)

    def forward(self, pair: Any, more: Any) -> Any:
        hidden = self.left(pair[0]) + self.right(pair[1]) * more["scale"]
        tail = {"z": functional.relu(hidden), "a": [hidden.sum(axis=1), functional.tanh(hidden)]}
        return tail, (hidden > 0, more["shift"] + hidden.mean(axis=1, keepdim=True))


def nested() -> Made:
    """Several inputs and outputs, in lists and dicts."""
    pair = [_Spec([None, 8], "float32", "one"), _Spec([None, 6], "float32", "two")]
    more = {
        "scale": _Spec([None, 1], "float32", "scale"),
        "shift": _Spec([None, 1], "float32", "shift"),
    }
    return _Nested(), [pair, more]


class _Quantised(nn.Layer):  # type: ignore[misc]
    """Every input of a convolution or product goes through eight bits and back."""

    def __init__(self) -> None:
        super().__init__()

        def steps(scale: float) -> Any:
            size, zero = paddle.to_tensor([scale]), paddle.zeros([1])
            return nn.Sequential(LinearQuanter(size, zero), LinearDequanter(size, zero))

        self.conv = nn.Conv2D(3, 16, 3)
        self.head = nn.Linear(16, 10)
        self.before, self.between = steps(4.0), steps(1.0)

    def forward(self, image: Any) -> Any:
        hidden = functional.relu(self.conv(self.before(image)))
        return self.head(self.between(hidden.mean(axis=[2, 3])))


def linear_quanter() -> Made:
    """Quantises to eight bits and back with Paddle's own layers."""
    return _Quantised(), [_Spec([2, 3, 24, 24], "float32", "image")]
