"""The files an export leaves: by default, and with FLAGS_enable_pir_api=0 in the environment."""

import os

import paddle
from paddle import inference
from paddle.jit import to_static
from paddle.static import InputSpec
from show import files, message

older = os.environ.get("FLAGS_enable_pir_api") == "0"
net = paddle.nn.Linear(10, 3)
net.eval()
paddle.jit.save(net, "net", input_spec=[InputSpec([None, 10], name="x")])
paddle.jit.save(paddle.nn.ReLU(), "no_weights", input_spec=[InputSpec([None, 10], name="x")])
print("a layer with weights:", files("net"))
print("a layer without:", files("no_weights"))

program = "net.pdmodel" if older else "net.json"
config = inference.Config(program, "net.pdiparams")
config.disable_glog_info()
predictor = inference.create_predictor(config)
x = paddle.rand([4, 10])
predictor.get_input_handle("x").copy_from_cpu(x.numpy())
predictor.run()
out = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
print(f"Paddle Inference reads {program}:", bool(abs(out - net(x).numpy()).max() < 1e-5))

called = to_static(paddle.nn.Linear(10, 3))
if older:
    print("to_static without full_graph=True:", message(lambda: called(x)).split(".")[0])
else:
    print("to_static without full_graph=True:", list(called(x).shape))
