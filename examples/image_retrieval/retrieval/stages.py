"""The ways in which one trained network answers: eager, as a graph, loaded, in Paddle Inference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import paddle
from paddle import inference

from retrieval.data import Bytes, scale
from retrieval.problems import ProblemError

Floats = npt.NDArray[np.float32]
Answer = Callable[[Floats], Floats]
PREFIX = "model"
INFERENCE = {
    "Paddle Inference, no passes": (False, False),
    "Paddle Inference, with passes": (True, False),
    "Paddle Inference, oneDNN": (True, True),
}


def of_layer(net: Any) -> Answer:
    """Answer with a layer: eager, converted, or loaded with ``jit.load``."""

    def answer(images: Floats) -> Floats:
        with paddle.no_grad():
            given: Floats = net(paddle.to_tensor(images)).numpy()
        return given

    return answer


def export(net: Any, folder: Path) -> Path:
    """Save a network for deployment; return the file of its program."""
    folder.mkdir(parents=True, exist_ok=True)
    # What the other graph mode left here would be taken for the new export.
    for left_over in ("json", "pdmodel", "pdiparams", "pdiparams.info"):
        (folder / f"{PREFIX}.{left_over}").unlink(missing_ok=True)
    net.eval()
    spec = [paddle.static.InputSpec([None, 3, 32, 32], "float32", "image")]
    paddle.jit.save(net, str(folder / PREFIX), input_spec=spec)
    return find_export(folder)


def find_export(folder: Path) -> Path:
    """Return the program that lies in a folder, in either format.

    Raises:
        ProblemError: there is none.
    """
    for suffix in ("json", "pdmodel"):
        program = folder / f"{PREFIX}.{suffix}"
        if program.is_file() and program.with_suffix(".pdiparams").is_file():
            return program
    what = "holds no exported model" if folder.is_dir() else "does not exist"
    raise ProblemError(
        f"{folder} {what}: expected {PREFIX}.json (or {PREFIX}.pdmodel) and {PREFIX}.pdiparams, "
        "as export.py writes them"
    )


def loaded(program: Path) -> Answer:
    """Answer with ``paddle.jit.load``.

    Raises:
        ProblemError: the files are damaged, or of another model.
    """
    try:
        net = paddle.jit.load(str(program.with_suffix("")))
        net.eval()
        return _checked(of_layer(net), program)
    except (ProblemError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001 (Paddle's own errors share no better base)
        raise _unusable(program, error) from None


def in_inference(program: Path, *, passes: bool, onednn: bool) -> Answer:
    """Answer with a predictor of Paddle Inference.

    Raises:
        ProblemError: the files are damaged, or of another model.
    """
    config = inference.Config(str(program), str(program.with_suffix(".pdiparams")))
    config.disable_glog_info()
    config.disable_gpu()
    config.switch_ir_optim(passes)
    if onednn:
        config.enable_mkldnn()
    else:
        config.disable_mkldnn()
    try:
        predictor = inference.create_predictor(config)
        source = predictor.get_input_handle(predictor.get_input_names()[0])
        result = predictor.get_output_handle(predictor.get_output_names()[0])

        def answer(images: Floats) -> Floats:
            source.copy_from_cpu(np.ascontiguousarray(images))
            predictor.run()
            given: Floats = result.copy_to_cpu()
            return given

        return _checked(answer, program)
    except (ProblemError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001
        raise _unusable(program, error) from None


def _unusable(program: Path, error: Exception) -> ProblemError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = next(
        (line for line in lines if "Error" in line), (lines or [type(error).__name__])[-1]
    )
    return ProblemError(f"{program} cannot be used, it is damaged or another model: {reason}")


def _checked(answer: Answer, program: Path) -> Answer:
    """Refuse a model that does not turn an image into eight numbers."""
    shape = answer(np.full((2, 3, 32, 32), 0.5, np.float32)).shape
    if shape != (2, 8):
        raise ProblemError(f"{program} is another model: it answers {list(shape)}, MyNet [2, 8]")
    return answer


def embed(answer: Answer, images: Bytes, *, block: int = 500) -> Floats:
    """Return the vectors of all images, computed some hundred at a time.

    Raises:
        ProblemError: some are not finite.
    """
    parts = [answer(scale(images[at : at + block])) for at in range(0, len(images), block)]
    vectors = np.concatenate(parts)
    if not np.isfinite(vectors).all():
        raise ProblemError("the network answers with numbers that are not finite: train it anew")
    return vectors
