"""Lists and dicts as arguments: the spec is nested as the argument is."""

import paddle
from paddle.static import InputSpec
from show import apart, message

X, Y = InputSpec([None, 10], name="x"), InputSpec([3], name="y")


class OfList(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(10, 3)

    def forward(self, inputs):
        x, y = inputs[0], inputs[1]
        return self.linear(x) + y


class OfDict(OfList):
    def forward(self, x, bias_info):
        return self.linear(x) + bias_info["bias"]


class OfBoth(OfList):
    def forward(self, inputs):
        return self.linear(inputs["x"]) + inputs["bias"][0]


def names(prefix):
    return [spec.name for spec in paddle.jit.load(prefix)._input_spec()]


x, y = paddle.rand([5, 10]), paddle.rand([3])

net = OfList()
paddle.jit.save(net, "of_list", input_spec=[[X, Y]])  # one argument: a list of two
loaded = paddle.jit.load("of_list")
print("list: inputs", names("of_list"), "differ by", apart(loaded(x, y), net([x, y])))

net = OfDict()
paddle.jit.save(net, "of_dict", input_spec=[X, {"bias": Y}])
loaded = paddle.jit.load("of_dict")
print("dict: inputs", names("of_dict"), "differ by", apart(loaded(x, y), net(x, {"bias": y})))

# An exported model has no nesting; the values of a dict stand in the order of its keys.
net = OfBoth()
paddle.jit.save(net, "of_both", input_spec=[{"x": X, "bias": [Y]}])
loaded = paddle.jit.load("of_both")
eager = net({"x": x, "bias": [y]})
print("both: inputs", names("of_both"), "differ by", apart(loaded(y, x), eager))

print(message(lambda: loaded({"x": x, "bias": [y]})))
print(
    "flat:", message(lambda: paddle.jit.save(OfList(), "m", input_spec=[X, Y])).split(" with ")[0]
)
print("too short:", message(lambda: paddle.jit.save(OfList(), "m", input_spec=[[X]])))
print("wrong key:", message(lambda: paddle.jit.save(OfDict(), "m", input_spec=[X, {"b": Y}])))
