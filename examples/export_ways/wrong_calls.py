"""What one gets for a spec that is missing or wrong."""

import paddle
from paddle.jit import to_static
from paddle.static import InputSpec
from show import message

X = InputSpec([None, 10], name="x")


class SimpleNet(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(10, 3)

    def forward(self, x):
        return self.linear(x)


net = SimpleNet()
net.eval()
net(paddle.rand([2, 10]))  # a call counts only after to_static
save = paddle.jit.save

print("no spec, never converted:", message(lambda: save(net, "m")))
print("no spec, never called:", message(lambda: save(to_static(SimpleNet()), "m")))
print("not a list:", message(lambda: save(net, "m", input_spec=X)).split(", but")[0])
print("one too many:", message(lambda: save(net, "m", input_spec=[X, X])).split(" with ")[0])
print("a folder:", message(lambda: save(net, "folder/", input_spec=[X])).split(" [")[0])
print("not a layer:", message(lambda: save("net", "m", input_spec=[X])))

# Not an error, and not what was meant:
save(net, "net.json", input_spec=[X])
paddle.jit.load("net.json")  # the prefix was "net.json"; the program is net.json.json
