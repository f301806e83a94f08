"""A decorator on `forward`: trained as a graph, exported without a word more."""

import paddle
from paddle.jit import to_static
from show import apart, files


class SimpleNet(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(10, 3)

    @to_static
    def forward(self, x, y):
        return self.linear(x) + y


net = SimpleNet()
net.eval()
x, y = paddle.rand([2, 10]), paddle.rand([2, 3])
out = net(x, y)  # runs the graph; this call also says what the inputs look like
paddle.jit.save(net, "net")

print("files:", files("net"))
print("loaded and decorated differ by", apart(paddle.jit.load("net")(x, y), out))
