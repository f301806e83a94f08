"""A training that alternates `use_act` by step: a graph for each value, the same weights."""

import paddle
from paddle.jit import to_static
from paddle.static import InputSpec
from show import ops


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


def train(convert):
    paddle.seed(7)
    net = convert(SimpleNet())
    optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    losses = []
    for step in range(10):
        x = paddle.rand([4, 10])
        loss = (net(x, use_act=step % 2 == 0) - 1).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return net, losses


_, eager = train(lambda net: net)
net, graph = train(lambda net: to_static(net, full_graph=True))
differ = [abs(one - other) > 1e-6 for one, other in zip(eager, graph, strict=True)]
print("steps whose losses differ:", sum(differ), "of", len(differ))
print("graphs:", len(net.forward.program_cache))

# After the calls above there are two graphs to choose from. Say which one is meant.
net.eval()
net = to_static(net, input_spec=[InputSpec([None, 10], name="x")], full_graph=True)
paddle.jit.save(net, "trained")
print("exported with the default:", ops("trained"))
