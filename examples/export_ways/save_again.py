"""A loaded layer, saved once more: it needs a spec like any other."""

import paddle
from paddle.static import InputSpec
from show import apart, files, message

X = [InputSpec([None, 10], name="x")]
paddle.jit.save(paddle.nn.Linear(10, 3), "net", input_spec=X)
loaded = paddle.jit.load("net")

print(message(lambda: paddle.jit.save(loaded, "again")))
paddle.jit.save(loaded, "again", input_spec=X)
print("files:", files("again"))
x = paddle.rand([4, 10])
print("saved again and loaded differ by", apart(paddle.jit.load("again")(x), loaded(x)))
