"""Questions about state and shape that a stage can answer without any reference.

Most reported faults of optimised inference are not wrong arithmetic. The first run is right and the
later ones are not; row 0 is right and the others are not; another shape, another model or another
thread leaves something behind. A verifier that runs once finds none of these. The suite says how
far answers were apart that should be the same; what that means is for the ladder to judge.
"""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.outputs import distance
from tipcheck.backends.server.jobs import load_feed
from tipcheck.backends.server.state_names import (
    BATCH_ONE,
    CLONE,
    EQUAL_ROWS,
    LEFT_OUT,
    PERMUTED,
    RUN_N,
    SHAPES,
    THREADS,
    TWO_MODELS,
)
from tipcheck.backends.stages import Place
from tipcheck.backends.told import told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tipcheck.backends.stages import Runner, StageKind

    Answer = Callable[[Mapping[str, Any]], None]
    Feed = dict[str, Any]
    Outputs = list[Any]

_MANY = 3
_COMPANION_SIDE = 24
_NO_ROWS = "no output has a row per row of the inputs"


def ask_about_state(
    kind: StageKind, runner: Runner, place: Place, request: Mapping[str, Any], answer: Answer
) -> None:
    """Ask everything that this stage and this model allow, one answer per check."""
    suite = _Suite(kind, runner, place, request)
    for name, ask in suite.questions():
        answer({"at": f"asking: {name}"})
        try:
            found = ask()
        except NotImplementedError:
            answer({"check": name, "why": "this stage has no such thing"})
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the answer
            answer({"check": name, "problem": told(error)})
        else:
            known = "why" if isinstance(found, str) else "worst"
            answer({"check": name, known: found})
    if suite.row_outputs is not None:
        answer({"row_outputs": suite.row_outputs})
    lost = suite.outlives_its_clone()
    if lost:
        answer({"noticed": lost})


class _Suite:
    def __init__(
        self, kind: StageKind, runner: Runner, place: Place, request: Mapping[str, Any]
    ) -> None:
        self._kind = kind
        self._runner = runner
        self._place = place
        self._request = request
        self._feed = load_feed(request["feed"])
        self._batched = [name for name in request["batched"] if name in self._feed]
        self._first = runner.run(self._feed)
        self._again = 0.0
        self._twin: Runner | None = None
        self._rows = int(self._feed[self._batched[0]].shape[0]) if self._batched else 0
        self.row_outputs: list[int] | None = request.get("row_outputs")
        """Places of the outputs with a row per row of the inputs; None until that is known."""

    def questions(self) -> list[tuple[str, Callable[[], float | str]]]:
        """Return what to ask, in an order in which later questions use earlier runs.

        Of a large model, whatever would take another copy of its weights is left out: a clone
        copies them, and oneDNN packs them anew for each shape.
        """
        rows: list[tuple[str, Callable[[], float | str]]] = [
            (EQUAL_ROWS, self._equal_rows),
            (PERMUTED, self._permuted),
            (BATCH_ONE, self._batch_one),
        ]
        if self._request.get("only_rows"):
            return rows
        asked = [
            rows[0],
            (SHAPES, self._shapes),
            *rows[1:],
            (TWO_MODELS, self._two_models),
            (CLONE, self._clone),
            (THREADS, self._threads),
            (RUN_N, self._run_n),
        ]
        if not self._request.get("large"):
            return asked
        costly = {CLONE, THREADS}
        if self._kind.packs:
            costly |= {SHAPES, BATCH_ONE, TWO_MODELS}
            if self.row_outputs is None:
                costly |= {EQUAL_ROWS, PERMUTED}
        return [(name, _too_large if name in costly else ask) for name, ask in asked]

    def _usual(self) -> float:
        """Run the usual inputs once more; return how far that is from the first time."""
        apart = distance(self._first, self._runner.run(self._feed))
        self._again = max(self._again, apart)
        return apart

    def _run_n(self) -> float:
        self._usual()
        return self._again

    def _equal_rows(self) -> float | str:
        if not self._batched:
            return "no input has an open first axis"
        if self._request.get("large") and self._kind.packs:
            return self._equal_rows_of_one_shape()
        feed = dict(self._feed)
        for name in self._batched:
            row = self._feed[name][:1]
            feed[name] = np.concatenate([row] * _MANY)
        found = self._runner.run(feed)
        self.row_outputs = [
            place
            for place, (usual, many) in enumerate(zip(self._first, found, strict=False))
            if np.ndim(usual) and usual.shape[0] == self._rows and many.shape[0] == _MANY
        ]
        if not self.row_outputs or self._rows == _MANY:
            return _NO_ROWS
        return self._apart_within(found, _MANY)

    def _equal_rows_of_one_shape(self) -> float | str:
        """Ask the same in the usual shape; another stage has found out which outputs have rows."""
        if not self.row_outputs or self._rows < 2:
            return _NO_ROWS
        feed = dict(self._feed)
        for name in self._batched:
            feed[name] = np.concatenate([self._feed[name][:1]] * self._rows)
        return self._apart_within(self._runner.run(feed), self._rows)

    def _apart_within(self, found: Outputs, count: int) -> float:
        rows = [[array[row] for array in self._only_rows(found)] for row in range(count)]
        return max(distance(rows[0], other) for other in rows[1:])

    def _shapes(self) -> float | str:
        other = self._request.get("other")
        if not other and not self._batched:
            return "no axis is open"
        if other:
            self._runner.run(load_feed(other))
        return self._usual()

    def _permuted(self) -> float | str:
        if not self.row_outputs or self._rows < 2:
            return _NO_ROWS
        feed = dict(self._feed)
        for name in self._batched:
            feed[name] = np.ascontiguousarray(self._feed[name][::-1])
        found = self._runner.run(feed)
        return self._compare_rows([array[::-1] for array in self._only_rows(found)])

    def _batch_one(self) -> float | str:
        if not self.row_outputs or self._rows < 2:
            return _NO_ROWS
        worst = 0.0
        for row in (0, self._rows - 1):
            feed = dict(self._feed)
            for name in self._batched:
                feed[name] = np.ascontiguousarray(self._feed[name][row : row + 1])
            found = self._only_rows(self._runner.run(feed))
            wanted = [array[row : row + 1] for array in self._only_rows(self._first)]
            worst = max(worst, distance(wanted, found))
        return worst

    def _only_rows(self, outputs: Sequence[Any]) -> Outputs:
        return [outputs[place] for place in self.row_outputs or ()]

    def _compare_rows(self, found: Outputs) -> float:
        return distance(self._only_rows(self._first), found)

    def _two_models(self) -> float | str:
        model = self._request.get("companion")
        if not model:
            return "there is no second model to run"
        place = Place(
            model=Path(model), source="", path=(), inputs=(), folder=self._place.folder / "two"
        )
        place.folder.mkdir(exist_ok=True)
        pixels = np.linspace(-1, 1, 2 * 3 * _COMPANION_SIDE**2, dtype=np.float32)
        feed = {"x": pixels.reshape(2, 3, _COMPANION_SIDE, _COMPANION_SIDE)}
        try:
            companion = self._kind.start(place)
            one = companion.run(feed)
        except Exception as error:  # noqa: BLE001 - another model's trouble
            return f"the second model does not run this way itself ({told(error)})"
        between = self._usual()
        return max(between, distance(one, companion.run(feed)), self._usual())

    def _clone(self) -> float | str:
        # Kept until the end: a predictor of the older format dies with its clone (see below).
        self._twin = self._runner.clone()
        return distance(self._first, self._twin.run(self._feed))

    def outlives_its_clone(self) -> str:
        """Return what happens to the stage once its clone is gone; empty when nothing does."""
        if self._twin is None:
            return ""
        self._twin = None
        gc.collect()
        try:
            apart = distance(self._first, self._runner.run(self._feed))
        except Exception as error:  # noqa: BLE001 - it is the answer
            return f"once a clone of it is destroyed it runs no more ({told(error)})"
        return f"once a clone of it is destroyed it is off by {apart:.2g} x rms" if apart else ""

    def _threads(self) -> float | str:
        self._twin = self._twin or self._runner.clone()
        runners = (self._runner, self._twin)
        found: dict[int, Outputs | BaseException] = {}

        def work(number: int) -> None:
            try:
                found[number] = runners[number].run(self._feed)
            except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
                found[number] = error

        threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        worst = 0.0
        for outcome in found.values():
            if isinstance(outcome, BaseException):
                raise outcome
            worst = max(worst, distance(self._first, outcome))
        return worst


def _too_large() -> str:
    """Say why a question is left out."""
    return f"{LEFT_OUT}: it takes another copy of so large a model; --full asks all the same"


def make_companion(folder: Path) -> Path:
    """Export the small model that keeps another one company; return its file."""
    import paddle

    class Companion(paddle.nn.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv = paddle.nn.Conv2D(3, 8, 3)
            self.norm = paddle.nn.BatchNorm2D(8)
            self.head = paddle.nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            x = paddle.nn.functional.relu(self.norm(self.conv(x)))
            return self.head(x.mean(axis=[2, 3]))

    paddle.seed(5)
    layer = Companion()
    layer.eval()
    spec = paddle.static.InputSpec([None, 3, None, None], "float32", "x")
    paddle.jit.save(layer, str(folder / "companion"), input_spec=[spec])
    found = folder / "companion.json"
    return found if found.exists() else folder / "companion.pdmodel"
