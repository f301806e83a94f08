"""Checks an export against the layer it was made from: dygraph against Paddle Inference.

`tipcheck patch` puts this file where a repo's export script finds it. It needs paddle and numpy and
nothing else, so that a patched repo runs wherever it ran before.
"""

from __future__ import annotations

import os
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RTOL = 1e-4
ATOL = 1e-4
OPEN = 64
"""Length of every axis that a shape leaves open."""
BATCH = 2
"""Rows of a batch: what goes wrong in the second row only is not seen with one."""
SEED = 2022


def verify_paddle_inference_correctness(
    layer: Any,
    path: str,
    image_shape: Sequence[Any] | None = None,
    rtol: float = RTOL,
    atol: float = ATOL,
) -> None:
    """Compare the answers of a layer with those of its export.

    Args:
        layer: what was saved.
        path: where to, without the ending.
        image_shape: shape of the one float32 input without the batch dimension; or the specs that
            it was saved with, nested as they were; or None for those the layer itself has.
        rtol: share of an element's magnitude that it may be off by.
        atol: amount that every element may be off by.

    Raises:
        AssertionError: the answers differ; the message says which output, and where the most.
    """
    specs = _specs(layer, image_shape)
    feed = _make_feed(specs)
    with _as_before(layer), paddle.no_grad():
        expected = [_array(one) for one in _tensors(layer(*_filled(specs, feed)))]
    actual = _infer(path, feed)
    if not expected or len(expected) != len(actual):
        raise AssertionError(
            f"{path}: the layer gives {len(expected)} outputs, the exported model {len(actual)}"
        )
    worst = 0.0
    for place, (one, other) in enumerate(zip(expected, actual)):
        problem, used = _differs(one, other, rtol, atol)
        worst = max(worst, used)
        if problem:
            raise AssertionError(f"{path}: output {place} of {len(expected)}: {problem}")
    print(  # noqa: T201 - the caller's log wants to know
        f"{path}: {len(expected)} outputs of Paddle Inference agree with the layer "
        f"(at most {worst:.2g} of the tolerance {atol:g} + {rtol:g} x |expected| is used)"
    )


# Inputs ------------------------------------------------------------------------------------------


def _specs(layer: Any, image_shape: Any) -> list[Any]:
    """Return what the layer is called with: specs where tensors go, nested as it takes them."""
    if image_shape is None:
        function = getattr(layer, "forward", layer)
        known = getattr(getattr(function, "_function_spec", None), "input_spec", None)
        known = known or getattr(function, "last_call_input_spec", None)
        if not known:
            raise ValueError("the specs of the layer are not known; give image_shape")
        return list(known)
    if all(isinstance(extent, (int, np.integer, type(None))) for extent in image_shape):
        extents = [OPEN if extent is None or extent < 0 else int(extent) for extent in image_shape]
        return [paddle.static.InputSpec([BATCH, *extents], "float32")]
    return list(image_shape)


def _make_feed(specs: Any) -> list[tuple[Any, Any]]:
    """Return every spec with an array for it, in the order of the export."""
    generator = np.random.default_rng(SEED)
    feed = []
    for spec in paddle.utils.flatten(specs):
        if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
            continue
        shape = [
            (BATCH if axis == 0 else OPEN) if extent is None or extent < 0 else int(extent)
            for axis, extent in enumerate(spec.shape)
        ]
        dtype = str(spec.dtype).rpartition(".")[2].lower()
        if dtype == "bool" or "int" in dtype:  # of other integers nobody knows what is allowed
            array: Any = generator.integers(0, 2, shape)
        else:
            array = generator.uniform(-1.0, 1.0, shape)
        feed.append((spec, array.astype("float32" if dtype == "bfloat16" else dtype)))
    return feed


def _filled(specs: Any, feed: Any) -> Any:
    """Return the arguments of a call: tensors where the specs were."""
    left = list(feed)
    flat = [
        paddle.to_tensor(left.pop(0)[1], dtype=item.dtype)
        if hasattr(item, "shape") and hasattr(item, "dtype")
        else item
        for item in paddle.utils.flatten(specs)
    ]
    return paddle.utils.pack_sequence_as(specs, flat)


# Two ways to answers -----------------------------------------------------------------------------


@contextmanager
def _as_before(layer: Any) -> Iterator[None]:
    """Run the layer as dygraph, and leave no trace of that."""
    layers = layer.sublayers(include_self=True) if hasattr(layer, "sublayers") else []
    flags = [(each, each.training) for each in layers]
    buffers = [(buffer, buffer.numpy().copy()) for each in layers for buffer in each.buffers(False)]  # noqa: FBT003
    numbers = random.getstate(), np.random.get_state(), paddle.get_rng_state()  # noqa: NPY002
    dynamic = paddle.in_dynamic_mode()
    paddle.disable_static()
    paddle.jit.enable_to_static(False)  # noqa: FBT003 - or a converted layer would run its graph
    try:
        yield
    finally:
        paddle.jit.enable_to_static(True)  # noqa: FBT003
        if not dynamic:
            paddle.enable_static()
        random.setstate(numbers[0])
        np.random.set_state(numbers[1])  # noqa: NPY002
        paddle.set_rng_state(numbers[2])
        for each, training in flags:
            each.training = training
        for buffer, value in buffers:
            buffer.set_value(value)


def _tensors(outputs: Any) -> list[Any]:
    """Return the tensors of nested outputs in the order of an export: dicts by their keys."""
    found: list[Any] = []
    for item in paddle.utils.flatten(outputs):
        if isinstance(item, paddle.Tensor) and all(item is not other for other in found):
            found.append(item)
    return found


def _array(tensor: Any) -> Any:
    return tensor.astype("float32").numpy() if "bfloat16" in str(tensor.dtype) else tensor.numpy()


def _infer(path: str, feed: list[tuple[Any, Any]]) -> list[Any]:
    from paddle import inference

    endings = [ending for ending in (".json", ".pdmodel") if os.path.exists(path + ending)]
    if not endings:
        raise AssertionError(f"{path}: there is no exported model ({path}.json or {path}.pdmodel)")
    newest = max(endings, key=lambda ending: os.path.getmtime(path + ending))
    config = inference.Config(path + newest, path + ".pdiparams")
    config.disable_glog_info()
    for name in ("disable_onednn", "disable_mkldnn"):
        if hasattr(config, name):  # on by default since Paddle 3, and not what is checked here
            getattr(config, name)()
            break
    predictor = inference.create_predictor(config)
    names = predictor.get_input_names()
    by_name = {spec.name: array for spec, array in feed}
    if not set(names) <= set(by_name) and len(names) != len(feed):
        raise AssertionError(f"{path}: the exported model takes {len(names)} inputs: {names}")
    for place, name in enumerate(names):
        array = by_name[name] if set(names) <= set(by_name) else feed[place][1]
        predictor.get_input_handle(name).copy_from_cpu(array)
    predictor.run()
    outputs = [predictor.get_output_handle(name) for name in predictor.get_output_names()]
    return [handle.copy_to_cpu() for handle in outputs]


# Comparison --------------------------------------------------------------------------------------


def _differs(expected: Any, actual: Any, rtol: float, atol: float) -> tuple[str, float]:
    """Return how two outputs differ, empty if they do not, and the share of tolerance used."""
    if expected.shape != actual.shape:
        return f"shape {list(expected.shape)} became {list(actual.shape)}", np.inf
    if expected.dtype != actual.dtype:
        return f"dtype {expected.dtype} became {actual.dtype}", np.inf
    if not expected.size:
        return "it has no elements, so nothing was compared", np.inf
    if expected.dtype.kind not in "fc":
        off = (expected != actual).astype("float64")
        allowed = np.full(expected.shape, 0.5)
    else:
        one, other = expected.astype("float64"), actual.astype("float64")
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        with np.errstate(invalid="ignore"):
            off = np.where(same, 0.0, np.abs(other - one))
            allowed = atol + rtol * np.abs(one)
        off = np.where(np.isfinite(off) & np.isfinite(allowed), off, np.inf) * ~same
        off = np.where(same, 0.0, off)
        allowed = np.where(np.isfinite(allowed), allowed, 1.0)
    used = off / allowed
    at = np.unravel_index(np.argmax(used), used.shape)
    if used[at] <= 1.0:
        return "", float(used[at])
    wrong = int((used > 1.0).sum())
    index = [int(number) for number in at]
    told = (
        f"{wrong:,} of {used.size:,} elements differ; the worst at {index}: "
        f"the layer gives {expected[at]!s}, Paddle Inference {actual[at]!s}"
    )
    return told, float(used[at])
