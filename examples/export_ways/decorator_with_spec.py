"""A decorator that says what the inputs look like: saved without ever being called."""

import paddle
from paddle.jit import to_static
from paddle.static import InputSpec
from show import files, message

X, Y = InputSpec([None, 10], name="x"), InputSpec([3], name="y")


class SimpleNet(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(10, 3)

    @to_static(input_spec=[X, Y], full_graph=True)
    def forward(self, x, y):
        return self.linear(x) + y


class OnlyX(SimpleNet):
    @to_static(input_spec=[X], full_graph=True)
    def forward(self, x, y):
        return self.linear(x) + y


net = SimpleNet()
net.eval()
paddle.jit.save(net, "simple_net")
print("files:", files("simple_net"))
out = paddle.jit.load("simple_net")(paddle.rand([5, 10]), paddle.rand([3]))
print("5 rows become", list(out.shape))

# A spec has to speak of every argument that has no default.
print(message(lambda: paddle.jit.save(OnlyX(), "only_x")).split(", but")[0])
# The decorator has spoken: another spec is refused.
other = InputSpec([None, 7], name="x")
print(message(lambda: paddle.jit.save(net, "other", input_spec=[other, Y])))
