"""Arguments that are no tensors become part of the graph; their defaults are what is exported."""

import paddle
from paddle.jit import to_static
from paddle.static import InputSpec
from show import apart, message, ops

X = InputSpec([None, 10], name="x")


class SimpleNet(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(10, 3)
        self.relu = paddle.nn.ReLU()

    def forward(self, x, use_act=False):
        out = self.linear(x)
        if use_act:
            out = self.relu(out)
        return out


class Scaled(paddle.nn.Layer):
    def forward(self, x, factor, *, shift=1.0):
        return x * factor + shift


net = SimpleNet()
net.eval()
x = paddle.rand([4, 10])

# Way 1: converted with a spec of the tensor alone: the default, False.
net = to_static(net, input_spec=[X], full_graph=True)
paddle.jit.save(net, "without")
# Way 2: converted again, with the value behind the spec of the tensor.
net = to_static(net, input_spec=[X, True], full_graph=True)
paddle.jit.save(net, "with")
print("default:", ops("without"))
print("True:   ", ops("with"))

# The same without converting: the value stands in the spec of jit.save.
plain = SimpleNet()
plain.eval()
for value in (False, True):
    paddle.jit.save(plain, f"plain_{value}", input_spec=[X, value])
    loaded = paddle.jit.load(f"plain_{value}")
    print(f"{value}: the loaded one takes x alone, differs by", apart(loaded(x), plain(x, value)))

scaled = Scaled()
paddle.jit.save(scaled, "scaled", input_spec=[X, 3.0])
print("factor 3.0, shift 1.0 differ by", apart(paddle.jit.load("scaled")(x), scaled(x, 3.0)))
print(message(lambda: paddle.jit.save(scaled, "m", input_spec=[X])).split(", but")[0])
