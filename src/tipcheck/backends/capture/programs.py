"""The answers of a static program that ``save_inference_model`` exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .answers import Call

if TYPE_CHECKING:
    from collections.abc import Mapping


def call_of_program(feed_vars: Any, fetch_vars: Any, options: Mapping[str, Any]) -> Call:  # noqa: ANN401
    """Return a call that runs the user's own program, before the export has touched it."""
    import paddle

    feeds = feed_vars if isinstance(feed_vars, (list, tuple)) else [feed_vars]
    fetches = fetch_vars if isinstance(fetch_vars, (list, tuple)) else [fetch_vars]
    program = options.get("program") or paddle.static.default_main_program()
    place = paddle.CPUPlace()
    specs = {var.name: var for var in feeds}

    def run(feed: Mapping[str, Any]) -> list[tuple[str, Any]]:
        executor = paddle.static.Executor(place)
        found = executor.run(program, feed=dict(feed), fetch_list=list(fetches), use_prune=True)
        return [(f"fetch_vars[{place}]", value) for place, value in enumerate(found)]

    return Call("", run, specs, {"layer": "program"})
