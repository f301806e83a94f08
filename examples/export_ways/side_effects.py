"""Python runs once, when the graph is made. What it does besides tensors is not exported."""

import random

import numpy as np
import paddle
from paddle.jit import to_static
from paddle.static import InputSpec
from show import message

X = [InputSpec([None, 10], name="x")]
x = paddle.ones([4, 10])


class Counting(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        print("  (forward runs)")
        self.calls += 1
        return x * self.calls


class Random(paddle.nn.Layer):
    def forward(self, x):
        return x * random.random()


class Sorting(paddle.nn.Layer):
    def forward(self, x):
        return paddle.to_tensor(np.sort(x.numpy()))


def three_answers(net):
    return [round(float(net(x).mean()), 3) for _ in range(3)]


print("eager:", three_answers(Counting()))
print("as a graph:", three_answers(to_static(Counting(), full_graph=True)))
net = Counting()
paddle.jit.save(net, "counting", input_spec=X)
print("exported:", three_answers(paddle.jit.load("counting")), "the layer has counted", net.calls)

paddle.jit.save(Random(), "random", input_spec=X)
answers = three_answers(paddle.jit.load("random"))
print("random.random() is one number for ever:", len(set(answers)) == 1)
print("numpy in forward:", message(lambda: paddle.jit.save(Sorting(), "m", input_spec=X)))
