"""Exports written for static graphs, as older parts of the suites still are."""

import paddle


def export(arch, save_path):
    """Build a program and save it for inference."""
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            x = paddle.static.data("x", [None, arch["width"]], "float32")
            h = paddle.static.nn.fc(x, 16, activation="relu")
            y = paddle.nn.functional.softmax(paddle.static.nn.fc(h, arch["classes"]))
            executor = paddle.static.Executor(paddle.CPUPlace())
            executor.run(startup)
            paddle.static.save_inference_model(save_path, [x], [y], executor, program=main)
    finally:
        paddle.disable_static()
