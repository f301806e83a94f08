"""`to_static(layer)`: the class stays as it is; the layer is changed, and returned."""

import paddle
from paddle.jit import to_static
from show import apart, files


class SimpleNet(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(10, 3)

    def forward(self, x, y):
        return self.linear(x) + y


layer = SimpleNet()
layer.eval()
x, y = paddle.rand([2, 10]), paddle.rand([2, 3])
eager = layer(x, y)

net = to_static(layer)
print("the same object:", net is layer)
print("graph and eager differ by", apart(net(x, y), eager))
paddle.jit.save(net, "net")
print("files:", files("net"))

# Trained first and converted afterwards, with a spec instead of a call:
trained = to_static(
    SimpleNet(),
    input_spec=[
        paddle.static.InputSpec([None, 10], name="x"),
        paddle.static.InputSpec([3], name="y"),
    ],
    full_graph=True,
)
trained.eval()
paddle.jit.save(trained, "after_training")
loaded = paddle.jit.load("after_training")
print("loaded and converted differ by", apart(loaded(x, y[0]), trained(x, y[0])))
