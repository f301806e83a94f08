"""A layer that nobody decorated: `eval()`, `InputSpec`, `jit.save`."""

import paddle
from paddle.static import InputSpec
from show import apart, files, message


class SimpleNet(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(10, 3)

    def forward(self, x, y):
        return self.linear(x) + y

    def another_func(self, x):
        return self.linear(x) * 2


net = SimpleNet()

# step 1: the mode of deployment
net.eval()

# step 2: what the inputs look like; None is any size
x_spec = InputSpec(shape=[None, 10], dtype="float32", name="x")
y_spec = InputSpec(shape=[3], dtype="float32", name="y")

# step 3: save
returned = paddle.jit.save(net, path="simple_net", input_spec=[x_spec, y_spec])

print("jit.save returns", returned)
print("files:", files("simple_net"))
loaded = paddle.jit.load("simple_net")
x, y = paddle.rand([5, 10]), paddle.rand([3])
print("loaded and eager differ by", apart(loaded(x, y), net(x, y)))
print("forward only, another_func is not exported:", not files("simple_net.another_func"))

narrow = InputSpec(shape=[None, 3], dtype="float32", name="x")


def save_narrow():
    paddle.jit.save(net, path="narrow", input_spec=[narrow, y_spec])
    paddle.jit.load("narrow")(paddle.rand([5, 3]), y)  # PaddlePaddle 3.2 notices only here


print(message(save_narrow))
