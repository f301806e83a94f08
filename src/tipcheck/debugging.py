"""``tipcheck.debug`` and ``tipcheck.trace``: the op table and the trace from a user's own process.

Stands outside the rooms because it knows several of them. Frameworks still run in workers; only
what exists in the user's process alone (a layer, a predictor they built) is run there.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.exports.program import read_program
from tipcheck.backends.inputs.samples import check_feed, drawn
from tipcheck.backends.tracing.execution import Execution, read_graph, stream
from tipcheck.backends.tracing.execution import trace as trace_of
from tipcheck.backends.tracing.run_modes import PLAIN, ModeSettings
from tipcheck.blame.choice import Choice
from tipcheck.blame.debugging import investigate
from tipcheck.blame.golden import record, record_with
from tipcheck.blame.question import Question, Sample
from tipcheck.compare.judge import Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from tipcheck.backends.trace import Trace, TracedTensor
    from tipcheck.blame.question import Check
    from tipcheck.blame.table import Table

    Array = npt.NDArray[Any]

Feed = Mapping[str, "npt.ArrayLike"]


def debug(  # noqa: PLR0913 - a library call with the options of the command
    model: str | Path,
    run_mode: str = "onednn_fp32",
    *,
    baseline: Any = "",  # noqa: ANN401 - a mode, a file, a layer, a predictor or a Config
    baseline_model: str | Path | None = None,
    inputs: Any = None,  # noqa: ANN401 - a dict, a list of them, a path
    tensors: Choice | None = None,
    check: Check | None = None,
    settings: ModeSettings | None = None,
    memory: int = 0,
    replay: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
) -> Table:
    """Compare two executions of a model tensor by tensor; return the table.

    Args:
        model: the exported ``.json`` or ``.pdmodel`` file.
        run_mode: how to run it.
        baseline: what to compare with: another run mode; a golden file; a ``paddle.nn.Layer``,
            which is exported as it is now; a ``paddle.inference.Config`` or a predictor that you
            built. By default no optimisation, float32, on the same device.
        baseline_model: another export of the model.
        inputs: a dict of arrays, a list of them, or an ``.npz`` file; drawn when not given.
        tensors: which tensors to look at; all by default.
        check: called with each pair of tensors and their values; what it returns, if anything,
            stands in the row's note.
        settings: what the run mode is told, such as ``ModeSettings(params=…)``.
        memory: bytes that tensors on their way may take.
        replay: whether to compute introduced errors.
        rtol: tolerance of the rows; by dtype when not given.
        atol: likewise.
        seed: of drawn inputs.
    """
    path = Path(model)
    with tempfile.TemporaryDirectory(prefix="tipcheck-") as name:
        folder = Path(name)
        question = Question(
            model=path,
            run_mode=run_mode,
            samples=_samples(path, inputs, folder, seed),
            baseline_model=Path(baseline_model) if baseline_model else None,
            settings=settings or ModeSettings(),
            choice=tensors or Choice(),
            memory=memory,
            replay=replay,
            rules=Rules(rtol=rtol, atol=atol),
            check=check,
        )
        return investigate(_with_baseline(question, baseline, folder))


def _with_baseline(question: Question, baseline: Any, folder: Path) -> Question:  # noqa: ANN401
    if isinstance(baseline, (str, Path)):
        text = str(baseline)
        if text.endswith(".npz"):
            return replace(question, golden=Path(text), samples=())
        return replace(question, baseline=text)
    from tipcheck.backends.tracing.own_baseline import Recorder, export_layer, is_layer  # noqa: PLC0415

    if is_layer(baseline):
        specs = read_program(question.model).inputs
        return replace(question, baseline_model=export_layer(baseline, specs, folder))
    graph = read_graph(question.reference, PLAIN, question.settings)
    golden = folder / "own.npz"
    record_with(question, golden, graph, Recorder(baseline, graph).run)
    return replace(question, golden=golden, samples=())


def trace(
    model: str | Path,
    run_mode: str = "cpu_plain",
    *,
    inputs: Any = None,  # noqa: ANN401 - a dict, a list of them, a path
    settings: ModeSettings | None = None,
    seed: int = 0,
) -> Trace:
    """Run a model once and return what it computed on the way, in op order, without the values."""
    path = Path(model)
    with tempfile.TemporaryDirectory(prefix="tipcheck-") as name:
        sample = _samples(path, inputs, Path(name), seed)[0]
        return trace_of(path, run_mode, sample.file, settings)


@contextlib.contextmanager
def tensors(
    model: str | Path,
    run_mode: str = "cpu_plain",
    *,
    inputs: Any = None,  # noqa: ANN401 - a dict, a list of them, a path
    settings: ModeSettings | None = None,
    seed: int = 0,
) -> Iterator[Iterator[tuple[TracedTensor, Array | None]]]:
    """Run a model and give its tensors one at a time, each with its values.

    An array is good until the next one is asked for; copy what you want to keep.
    """
    path = Path(model)
    with tempfile.TemporaryDirectory(prefix="tipcheck-") as name:
        sample = _samples(path, inputs, Path(name), seed)[0]
        with Execution(path, run_mode, settings).start(sample.file) as session:
            session.wait()
            yield stream(session, sample.file)


def save_golden(
    model: str | Path,
    path: str | Path,
    run_mode: str = "cpu_plain",
    *,
    inputs: Any = None,  # noqa: ANN401 - a dict, a list of them, a path
    seed: int = 0,
) -> None:
    """Record a run as a baseline for other versions and machines."""
    with tempfile.TemporaryDirectory(prefix="tipcheck-") as name:
        samples = _samples(Path(model), inputs, Path(name), seed)
        record(Question(Path(model), run_mode, samples, baseline=run_mode), Path(path), _quiet)


def _quiet(_: str) -> None:
    """Say nothing."""


def _samples(model: Path, inputs: Any, folder: Path, seed: int) -> tuple[Sample, ...]:  # noqa: ANN401
    specs = read_program(model).inputs
    if inputs is None:
        return (Sample(f"seed {seed}", drawn(specs, folder, seed=seed)[0]),)
    if isinstance(inputs, (str, Path)):
        check_feed(Path(inputs), specs)
        return (Sample(Path(inputs).name, Path(inputs).absolute()),)
    feeds: Sequence[Feed] = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    made = []
    for number, feed in enumerate(feeds):
        file = folder / f"given_{number}.npz"
        np.savez(file, **{name: np.asarray(array) for name, array in feed.items()})  # type: ignore[arg-type]
        check_feed(file, specs, called=f"inputs[{number}]")
        made.append(Sample(f"inputs[{number}]", file))
    return tuple(made)


__all__ = ["debug", "save_golden", "tensors", "trace"]
