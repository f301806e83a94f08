"""`jit.load`: a layer without its code. It answers, and can be trained further."""

import paddle
from paddle.static import InputSpec
from show import apart, message

paddle.seed(1)
net = paddle.nn.Sequential(paddle.nn.Linear(10, 3), paddle.nn.Dropout(0.5))
net.eval()
paddle.jit.save(net, "net", input_spec=[InputSpec([None, 10], name="x")])

loaded = paddle.jit.load("net")
x = paddle.rand([4, 10])
print("loaded and eager differ by", apart(loaded(x), net(x)))

loaded.train()
print("dropout after train():", "at work" if apart(loaded(x), loaded(x)) else "does nothing")
optimizer = paddle.optimizer.SGD(0.1, parameters=loaded.parameters())
losses = []
for _ in range(5):
    loss = (loaded(x) - 1).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    losses.append(float(loss))
print("the loss falls in every step:", losses == sorted(losses, reverse=True))

print(message(lambda: paddle.jit.load("nowhere")).split(". ")[0])
