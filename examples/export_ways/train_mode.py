"""A layer left in train mode: what `jit.save` puts right, and what it does not."""

import paddle
from paddle.jit import to_static
from paddle.static import InputSpec
from show import apart

X = [InputSpec([None, 10], name="x")]


class Dropped(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.normalise = paddle.nn.BatchNorm1D(10)
        self.drop = paddle.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.normalise(x))


class Asking(paddle.nn.Layer):
    def forward(self, x):
        return x * 2 if self.training else x * 0.5


x = paddle.ones([4, 10])


def wrong_by(name, net):
    """How far the export is from the layer in eval mode."""
    loaded = paddle.jit.load(name)
    loaded.eval()
    net.eval()
    return apart(loaded(x), net(x))


net = Dropped()
paddle.jit.save(net, "dropped", input_spec=X)
print("Dropout and BatchNorm, eval() forgotten: wrong by", wrong_by("dropped", net))

net = Asking()
paddle.jit.save(net, "asking", input_spec=X)
print("if self.training, eval() forgotten: wrong by", wrong_by("asking", net))

net = to_static(Asking(), full_graph=True)
net(x)
paddle.jit.save(net, "called")
print("the same, converted and called: wrong by", wrong_by("called", net))

net = Asking()
net.eval()
paddle.jit.save(net, "asked", input_spec=X)
print("if self.training, after eval(): wrong by", wrong_by("asked", net))
