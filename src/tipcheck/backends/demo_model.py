"""The worker behind ``tipcheck demo``: MobileNetV3-small, exported once, run stage by stage.

Run as ``python -m tipcheck.backends.demo_model`` by ``run_worker``. The weights are random from
a fixed seed, so that nothing has to be downloaded; the graph is the real one.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.isolation import answer_request
from tipcheck.backends.predictor import make_predictor, run_predictor

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = 4
SIZE = 224


def work(request: dict[str, Any], answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer one request: ``{"stage": NAME, "folder": PATH}``; ``eager`` exports the model too."""
    import numpy as np

    folder = Path(request["folder"])
    if request["stage"] == "eager":
        outputs, seconds = _export_and_run(folder)
    else:
        with np.load(folder / "inputs.npz", allow_pickle=False) as inputs:
            predictor = make_predictor(folder / "model.json", request["stage"])
            feed = {name: inputs[name] for name in predictor.get_input_names()}
        run_predictor(predictor, feed)
        start = time.perf_counter()
        outputs = run_predictor(predictor, feed)
        seconds = time.perf_counter() - start
    named = {f"output_{index}": output for index, output in enumerate(outputs)}
    archive = folder / f"{request['stage']}.npz"
    np.savez(archive, **named)
    answer({"outputs": list(named), "archive": str(archive), "seconds": seconds})


def _export_and_run(folder: Path) -> tuple[list[Any], float]:
    import numpy as np
    import paddle

    paddle.seed(2018)
    model = paddle.vision.models.mobilenet_v3_small()
    pixels = np.random.default_rng(2018).standard_normal((BATCH, 3, SIZE, SIZE), dtype=np.float32)
    spec = paddle.static.InputSpec([None, 3, SIZE, SIZE], "float32", "image")
    with paddle.no_grad():
        # Untrained, its answers would shrink to nothing on the way (1e-7). One pass that takes over
        # the statistics of every normalisation keeps them at a scale where errors show.
        for layer in model.sublayers():
            if isinstance(layer, paddle.nn.BatchNorm2D):
                layer._momentum = 0.0  # noqa: SLF001 - Paddle has no public setter
        model.train()
        model(paddle.to_tensor(pixels))
        model.eval()
        start = time.perf_counter()
        outputs = model(paddle.to_tensor(pixels)).numpy()
        seconds = time.perf_counter() - start
    paddle.jit.save(model, str(folder / "model"), input_spec=[spec])
    np.savez(folder / "inputs.npz", image=pixels)
    return [outputs], seconds


if __name__ == "__main__":
    answer_request(work)
