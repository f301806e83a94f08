"""Without a spec, the last call decides: its sizes become those of the export."""

import paddle
from paddle.jit import to_static
from paddle.static import InputSpec
from show import files


class Pairs(paddle.nn.Layer):
    def forward(self, x):
        return x.reshape([x.shape[0] // 2, -1])


def spec_of(layer):
    return [(spec.shape, spec.name) for spec in layer._input_spec()]


net = to_static(Pairs())
net(paddle.rand([4, 10]))
paddle.jit.save(net, "called")
print("files:", files("called"))
called = paddle.jit.load("called")
print("spec of the call:", spec_of(called))
print("4 rows become", list(called(paddle.rand([4, 10])).shape))
print("6 rows become", list(called(paddle.rand([6, 10])).shape), "and should become [3, 20]")

paddle.jit.save(Pairs(), "any", input_spec=[InputSpec([None, 10], name="x")])
named = paddle.jit.load("any")
print("spec that was given:", spec_of(named))
print("6 rows become", list(named(paddle.rand([6, 10])).shape))
