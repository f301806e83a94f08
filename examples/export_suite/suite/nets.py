"""Models that are called with tensors in a row."""

import paddle
from paddle import nn
from paddle.nn import functional as F


class VisionTransformer(nn.Layer):
    """Patches, a few encoder layers, a head."""

    def __init__(self, size=32, patch=8, width=32, depth=2, classes=10):
        """Make the layers."""
        super().__init__()
        self.patches = nn.Conv2D(3, width, patch, patch)
        count = (size // patch) ** 2 + 1
        self.token = self.create_parameter([1, 1, width])
        self.places = self.create_parameter([1, count, width])
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.1, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        """Return scores."""
        h = self.patches(x).flatten(2).transpose([0, 2, 1])
        token = self.token.expand([x.shape[0], -1, -1])
        h = paddle.concat([token, h], 1) + self.places
        return self.head(self.norm(self.encoder(h))[:, 0])


class TextEncoder(nn.Layer):
    """A transformer encoder over tokens, padding masked out."""

    def __init__(self, words=200, kinds=2, width=32, depth=2):
        """Make the layers."""
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.kinds = nn.Embedding(kinds, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.1)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.pooler = nn.Linear(width, width)

    def forward(self, input_ids, token_type_ids=None):
        """Return the sequence and its summary."""
        h = self.words(input_ids)
        if token_type_ids is not None:
            h = h + self.kinds(token_type_ids)
        mask = (input_ids == 0).astype("float32").unsqueeze([1, 2]) * -1e4
        h = self.encoder(h, mask)
        return h, F.tanh(self.pooler(h[:, 0]))


class SentimentLSTM(nn.Layer):
    """Tokens through a two-way LSTM; the specs stand at the forward itself."""

    def __init__(self, words=100, width=16):
        """Make the layers."""
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, direction="bidirect")
        self.head = nn.Linear(2 * width, 2)

    @paddle.jit.to_static(
        input_spec=[paddle.static.InputSpec([None, None], "int64", "tokens")], full_graph=True
    )
    def forward(self, tokens):
        """Return scores."""
        h, _ = self.lstm(self.words(tokens))
        return F.softmax(self.head(h.mean(1)))


class CRNN(nn.Layer):
    """Text recognition: a column of features for each step, then a GRU."""

    def __init__(self, letters=37):
        """Make the layers."""
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2D(3, 16, 3, padding=1), nn.BatchNorm2D(16), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(16, 32, 3, padding=1), nn.BatchNorm2D(32), nn.Hardswish(), nn.MaxPool2D(2, 2),
        )  # fmt: skip
        self.neck = nn.GRU(32 * 8, 32)
        self.head = nn.Linear(32, letters)

    def forward(self, x):
        """Return a distribution over letters for each column."""
        h = self.features(x).transpose([0, 3, 1, 2]).flatten(2)
        return F.softmax(self.head(self.neck(h)[0]), axis=2)


class SmallUNet(nn.Layer):
    """Segmentation: down, up, and the class of every pixel."""

    def __init__(self, classes=4):
        """Make the layers."""
        super().__init__()
        self.down = nn.Conv2D(3, 16, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2D(16)
        self.up = nn.Conv2D(16, classes, 1)

    def forward(self, x):
        """Return the map of classes and the scores."""
        h = self.up(F.relu(self.norm(self.down(x))))
        h = F.interpolate(h, paddle.shape(x)[2:], mode="bilinear")
        return paddle.argmax(h, 1, dtype="int32"), h


class Generator(nn.Layer):
    """A picture from noise."""

    def __init__(self, width=8):
        """Make the layers."""
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2DTranspose(16, width, 4, 1), nn.InstanceNorm2D(width), nn.LeakyReLU(0.2),
            nn.Conv2DTranspose(width, 3, 4, 2, 1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, z):
        """Return a picture."""
        return self.layers(z)


class DeepFM(nn.Layer):
    """Click prediction: one table for all features, pairs of them, and a small net."""

    def __init__(self, features=300, fields=6, width=8):
        """Make the layers."""
        super().__init__()
        self.first = nn.Embedding(features, 1)
        self.second = nn.Embedding(features, width)
        self.deep = nn.Sequential(nn.Linear(fields * width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, feature_ids, dense):
        """Return a probability."""
        linear = self.first(feature_ids).sum([1, 2]) + dense.sum(1)
        pairs = self.second(feature_ids)
        crossed = 0.5 * (pairs.sum(1).square() - pairs.square().sum(1)).sum(1)
        return F.sigmoid(linear + crossed + self.deep(pairs.flatten(1)).squeeze(1))


class Keywords(nn.Layer):
    """Speech commands: one-dimensional convolutions; gives a dict."""

    def __init__(self, bands=20, words=12):
        """Make the layers."""
        super().__init__()
        self.one = nn.Conv1D(bands, 32, 5, padding=2)
        self.two = nn.Conv1D(32, 32, 3, groups=32, padding=1)
        self.head = nn.Linear(32, words)

    def forward(self, features, scale=1.0):
        """Return scores, and what they were made of."""
        h = F.relu(self.two(F.relu(self.one(features * scale))))
        pooled = h.mean(-1)
        return {"scores": self.head(pooled), "pooled": [pooled, h.max(-1)]}
