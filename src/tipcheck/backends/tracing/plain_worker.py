"""The worker that runs a model once, as users do: memory reuse on, nothing watched.

Run as ``python -m tipcheck.backends.tracing.plain_worker`` by ``run_plain``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.backends.isolation import answer_request
from tipcheck.backends.tracing.run_modes import ModeSettings, config_calls

if TYPE_CHECKING:
    from collections.abc import Callable


def work(request: dict[str, Any], answer: Callable[[dict[str, Any]], None]) -> None:
    """Run once, and answer with the names of the outputs."""
    import numpy as np
    from paddle import inference

    from tipcheck.backends.tracing.watched_predictor import feed, make_config

    settings = ModeSettings(**request["settings"])
    config = make_config(
        request["model"], config_calls(request["run_mode"], settings, quantised=True), settings
    )
    try:
        predictor = inference.create_predictor(config)
    except (ValueError, RuntimeError) as error:
        answer({"refused": " ".join(str(error).split())[:160]})
        return
    with np.load(request["inputs"], allow_pickle=False) as arrays:
        feed(predictor, {name: arrays[name] for name in arrays.files}, request["model"])
    predictor.run()
    names = predictor.get_output_names()
    outputs = [predictor.get_output_handle(name).copy_to_cpu() for name in names]
    np.savez(request["archive"], **{str(at): array for at, array in enumerate(outputs)})
    answer({"outputs": list(names)})


if __name__ == "__main__":
    answer_request(work)
