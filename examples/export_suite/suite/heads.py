"""Detection: inputs in a dict, boxes out of a head with NMS."""

import paddle
from paddle import nn
from paddle.nn import functional as F


class Detector(nn.Layer):
    """One box for each cell, scaled back to the picture, overlaps removed."""

    def __init__(self, classes=3, keep=5):
        """Make the layers."""
        super().__init__()
        self.classes = classes
        self.keep = keep
        self.backbone = nn.Sequential(
            nn.Conv2D(3, 16, 3, stride=4, padding=1), nn.BatchNorm2D(16), nn.Swish(),
            nn.Conv2D(16, 16, 3, stride=4, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.boxes = nn.Conv2D(16, 4, 1)
        self.scores = nn.Conv2D(16, classes, 1)

    def forward(self, inputs):
        """Return boxes, scores and how many there are."""
        h = self.backbone(inputs["image"])
        corners = F.sigmoid(self.boxes(h)).flatten(2).transpose([0, 2, 1])
        size = inputs["im_shape"] / inputs["scale_factor"]
        size = paddle.concat([size[:, 1:], size[:, :1]], 1).unsqueeze(1)
        near = corners[:, :, :2] * size
        boxes = paddle.concat([near, near + corners[:, :, 2:] * size], -1)
        scores = F.sigmoid(self.scores(h)).flatten(2).max(1)
        picked = paddle.vision.ops.nms(boxes[0], 0.5, scores[0], top_k=self.keep)
        return {
            "bbox": paddle.gather(boxes[0], picked),
            "score": paddle.gather(scores[0], picked),
            "bbox_num": paddle.shape(picked),
        }
