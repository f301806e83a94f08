"""Several functions of one layer, and a function without a layer."""

import paddle
from paddle.jit import to_static
from paddle.static import InputSpec
from show import apart, files, message

X = [InputSpec([None, 10], name="x")]


class SimpleNet(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(10, 3)

    @to_static(input_spec=X, full_graph=True)
    def forward(self, x):
        return self.linear(x)

    @to_static(input_spec=X, full_graph=True)
    def another_func(self, x):
        return self.linear(x) * 2


net = SimpleNet()
net.eval()
paddle.jit.save(net, "net")
print("files:", files("net"))
loaded = paddle.jit.load("net")
x = paddle.rand([4, 10])
print("forward differs by", apart(loaded(x), net(x)))
print("another_func differs by", apart(loaded.another_func(x), net.another_func(x)))
print(message(lambda: paddle.jit.save(net, "m", input_spec=X)).split(",")[0])


@to_static(input_spec=X, full_graph=True)
def double(x):
    return x + x


paddle.jit.save(double, "double")
print("files:", files("double"))
print("double differs by", apart(paddle.jit.load("double")(x), double(x)))
