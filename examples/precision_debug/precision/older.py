"""A model in the older format, `.pdmodel`, written once more as `.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import paddle
from paddle.pir_utils import OldIrGuard


def operations(program: Any, name: str) -> list[Any]:
    """Return the ops of a name, in order."""
    return [op for op in program.global_block().ops if op.name() == name]


def as_data(program: Any, feed: Any) -> Any:
    """Put a `data` op in the place of a `feed` op, as newer exports have it; return its value."""
    given = feed.results()[0]
    with paddle.static.program_guard(program):
        paddle.base.libpaddle.pir.set_insertion_point(feed)
        value = paddle.static.data(feed.attrs()["name"], given.shape, given.dtype)
        paddle.base.libpaddle.pir.reset_insertion_point_to_end()
    given.replace_all_uses_with(value)
    program.global_block().remove_op(feed)
    return value


def translate(older: Path, newer: Path) -> None:
    """Read ``older``/inference.pdmodel, write ``newer``/inference.json with the same weights."""
    newer.mkdir(parents=True, exist_ok=True)
    paddle.enable_static()
    try:
        with OldIrGuard():
            executor = paddle.static.Executor(paddle.CPUPlace())
            read, _, _ = paddle.static.load_inference_model(str(older / "inference"), executor)
        program = paddle.pir.translate_to_pir(read.desc)
        inputs = [as_data(program, op) for op in operations(program, "pd_op.feed")]
        paddle.static.save_inference_model(
            str(newer / "inference"),
            inputs,
            [op.operands_source()[0] for op in operations(program, "pd_op.fetch")],
            paddle.static.Executor(paddle.CPUPlace()),
            program=program,
        )
    finally:
        paddle.disable_static()
