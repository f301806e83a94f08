"""An independent way of looking: applies the passes one by one from Python and fetches every value.

``python bench/pass_replay.py MODEL.json INPUTS.npz PASSES.json OUT.npz`` where PASSES.json lists
the names of the passes in order. Writes the results of every op as ``INDEX:TYPE:POSITION``. No hook
and no predictor is involved, so what both ways show is not an artefact of one of them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

# Cached weights must outlive their source.
os.environ["FLAGS_eager_delete_tensor_gb"] = "-1"  # noqa: SIM112 - as Paddle spells it

import numpy as np
import paddle

_LEFT_OUT = {
    "constant_folding_pass",  # cannot be told its place from Python; without it nothing changes
    "replace_fetch_with_shadow_output_pass",
    "remove_shadow_feed_pass",
    "inplace_pass",
    "dead_code_elimination_pass",  # without the fetch ops everything would be dead
}
_REGISTERED = (("_mkldnn_", "_onednn_"),)
"""Names in the log are not always the registered ones."""


def main() -> int:
    """Apply the passes and write the values."""
    model, inputs, passes, target = sys.argv[1:5]
    paddle.enable_static()
    executor = paddle.static.Executor(paddle.CPUPlace())
    _warm_up()
    with paddle.static.scope_guard(paddle.static.Scope()):
        program, feeds, fetches = paddle.static.load_inference_model(
            model.removesuffix(".json"), executor
        )
        del fetches
        block = program.global_block()
        for op in list(block.ops):
            if op.name() == "pd_op.fetch":
                block.remove_op(op)
        _apply(program, json.loads(Path(passes).read_text("utf-8")))
        named: list[tuple[str, Any]] = []
        for index, op in enumerate(block.ops):
            for position, result in enumerate(op.results()):
                if result.initialized() and _is_float(result):
                    named.append((f"{index}:{op.name()}:{position}", result))
        with np.load(inputs) as arrays:
            feed = {name: arrays[name] for name in feeds}
        wanted = [(name, value) for name, value in named if _is_data(name)]
        found = paddle.static.Executor(paddle.CPUPlace()).run(
            program, feed=feed, fetch_list=[value for _, value in wanted]
        )
        pairs = zip(wanted, found, strict=True)
        fetched = {name: array for (name, _), array in pairs if array is not None}
    arrays_by_name: dict[str, Any] = fetched
    np.savez(target, **arrays_by_name)
    return 0


def _warm_up() -> None:
    """Run something, or the oneDNN dialect is not registered and its ops get no names."""
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        x = paddle.static.data("x", [1], "float32")
        y = x + 1
        paddle.static.Executor(paddle.CPUPlace()).run(
            program, feed={"x": np.zeros(1, "float32")}, fetch_list=[y]
        )


def _apply(program: Any, names: list[str]) -> None:
    for name in names:
        if name in _LEFT_OUT:
            continue
        manager = paddle.base.libpaddle.pir.PassManager()
        for spelling in (name, *(name.replace(old, new) for old, new in _REGISTERED)):
            try:
                manager.add_pass(spelling, {})
            except Exception:  # noqa: BLE001, S112 - not registered under this name
                continue
            try:
                manager.run(program)
            except ValueError as error:  # some want a scope, which cannot be given from Python
                print(f"not run: {name} ({str(error).splitlines()[0][:120]})", file=sys.stderr)
            break
        else:
            print(f"not registered: {name}", file=sys.stderr)


def _is_float(value: Any) -> bool:
    return bool(value.is_dense_tensor_type()) and str(value.dtype).endswith(("float32", "FLOAT32"))


def _is_data(name: str) -> bool:
    return name.split(":")[1] not in ("pd_op.data", "builtin.parameter", "pd_op.full")


if __name__ == "__main__":
    sys.exit(main())
