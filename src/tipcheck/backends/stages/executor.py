"""The exported program as it is, on the static executor: no predictor, no pass, no fusion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.backends.stages import Place, StageKind, register

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class ProgramRunner:
    """A program in a scope of its own; the process stays in static mode."""

    def __init__(self, model: Path) -> None:
        import paddle

        paddle.enable_static()
        self._paddle = paddle
        self._scope = paddle.static.Scope()
        self._executor = paddle.static.Executor(paddle.CPUPlace())
        with paddle.static.scope_guard(self._scope):
            self._program, self._feeds, self._fetches = paddle.static.load_inference_model(
                str(model.with_suffix("")), self._executor
            )

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        """Return the outputs of one run."""
        given = {name: feed[name] for name in self._feeds}
        with self._paddle.static.scope_guard(self._scope):
            found = self._executor.run(self._program, feed=given, fetch_list=self._fetches)
        return list(found)

    def clone(self) -> ProgramRunner:
        """Say that programs are not cloned this way."""
        raise NotImplementedError


def start(place: Place) -> ProgramRunner:
    """Load the program."""
    return ProgramRunner(place.exported())


register(StageKind("executor", start))
