"""`if`, `for` and `while` over tensors: part of the graph, so the export decides at run time."""

import paddle
from paddle.static import InputSpec
from show import apart, ops

X = InputSpec([None, 10], name="x")


class If(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(10, 3)

    def forward(self, x):
        if x.mean() > 0:
            y = self.linear(x)
        else:
            y = -self.linear(x)
        return y


class For(paddle.nn.Layer):
    def forward(self, x, times):
        for _ in range(times):
            x = x * 2 + 1
        return x


class Rows(paddle.nn.Layer):
    def forward(self, x):
        total = paddle.zeros([10])
        for row in x:
            total = total * 0.5 + row
        return total


class While(paddle.nn.Layer):
    def forward(self, x):
        while x.abs().sum() < 100:
            x = x * 2
        return x


def check(name, net, spec, inputs):
    net.eval()
    paddle.jit.save(net, name, input_spec=spec)
    loaded = paddle.jit.load(name)
    worst = max(apart(loaded(*given), net(*given)) for given in inputs)
    kinds = [op for op in ops(name).split() if op in ("if", "while")] or ["neither"]
    print(f"{name}: {' '.join(kinds)} in the graph; {len(inputs)} inputs differ by {worst}")


x = paddle.rand([4, 10]) + 0.5
counts = [paddle.to_tensor(number) for number in (0, 1, 5)]
check("if", If(), [X], [(x,), (-x,)])
check("for", For(), [X, InputSpec([], "int64", "times")], [(x, number) for number in counts])
check("rows", Rows(), [X], [(x,), (x[:1],), (paddle.rand([9, 10]),)])
check("while", While(), [X], [(x,), (x * 50,)])

# A number that is no tensor is known when the graph is made: the loop is written out.
paddle.jit.save(For(), "written_out", input_spec=[X, 3])
print("three times, written out:", ops("written_out"))
