from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MAKE = """
import sys
import numpy as np
import paddle
from paddle import nn

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.one, self.norm = nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8)
        self.two, self.head = nn.Conv2D(8, 8, 3, padding=1), nn.Linear(8, 5)

    def forward(self, image):
        x = nn.functional.relu(self.norm(self.one(image)))
        x = nn.functional.gelu(self.two(x)) + x
        return self.head(x.mean([2, 3]))

folder = sys.argv[1]
paddle.seed(7)
net = Net()
net.eval()
spec = paddle.static.InputSpec([None, 3, None, None], "float32", "image")

def save(name):
    paddle.jit.save(net, f"{folder}/{name}", input_spec=[spec])

save("good")
image = np.random.default_rng(7).standard_normal((2, 3, 12, 12), dtype=np.float32)
np.savez(f"{folder}/image.npz", image=image)
weight = net.two.weight.numpy()
net.two.weight.set_value(weight * 1.01)
save("scaled")
broken = weight.copy()
broken[2] = np.nan
net.two.weight.set_value(broken)
save("nan")
net.two.weight.set_value(weight)
net.norm._epsilon = 0.05
save("epsilon")
"""


@pytest.fixture(scope="session")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small exported net, ``good``, and copies of it with one broken op."""
    folder = tmp_path_factory.mktemp("nets")
    script = folder / "make.py"  # Paddle reads the source of what it exports
    script.write_text(MAKE, encoding="utf-8")
    subprocess.run([sys.executable, str(script), str(folder)], check=True, capture_output=True)
    return folder
