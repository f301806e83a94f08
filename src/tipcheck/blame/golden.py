"""A recorded baseline: one execution in a file, to hold other versions and machines against.

The file is an ordinary ``.npz``: the program that ran, its inputs, every floating tensor by the id
of its value, and the final outputs. It is written and read a tensor at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tipcheck.backends.graph import Graph
from tipcheck.backends.trace import Trace, TracedTensor
from tipcheck.backends.tracing.crash import CrashError
from tipcheck.backends.tracing.execution import Execution, graph_of, stream
from tipcheck.backends.tracing.run_modes import default_baseline
from tipcheck.blame.align import align
from tipcheck.blame.comparer import judge_pair
from tipcheck.blame.lockstep import INTERRUPTED, CandidateCrashError, ComparedPair, Lockstep
from tipcheck.blame.orienting import oriented
from tipcheck.blame.question import Question, Sample
from tipcheck.blame.rows import from_graph
from tipcheck.blame.spool import Observer
from tipcheck.blame.surroundings import versions
from tipcheck.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import numpy.typing as npt

    from tipcheck.backends.tracing.session import Session
    from tipcheck.blame.lockstep import Choice as Look
    from tipcheck.compare.judge import Rules

    Array = npt.NDArray[Any]
    Say = Callable[[str], None]

_FORMAT = 1
_META = "tipcheck"


@dataclass(frozen=True, slots=True)
class GoldenSample:
    """One recorded sample: the tensors that were seen, and the names of inputs and outputs."""

    name: str
    tensors: tuple[TracedTensor, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GoldenMeta:
    """What stands at the head of a golden file.

    Attributes:
        format: version of this form.
        graph: the program that ran.
        program: digest of the exported program, which tells whether its ops can be replayed.
        versions: of what it was recorded with.
        samples: what was recorded.
    """

    format: int
    graph: Graph
    program: str
    versions: dict[str, str]
    samples: tuple[GoldenSample, ...]


def record(question: Question, path: Path, say: Say) -> None:
    """Run the baseline of a question and write it to a file.

    Raises:
        ToolError: the file cannot be written.
    """
    mode = question.baseline or default_baseline(question.run_mode)
    execution = Execution(question.reference, mode, question.baseline_settings)
    with execution.start(question.samples[0].file) as session:
        say("loading the model")
        graph = graph_of(session)
        with _written(path, question.reference, graph) as (archive, samples):
            for number, sample in enumerate(question.samples):
                say(f"recording sample {number + 1}")
                samples.append(_record_sample(session, archive, number, sample))


def record_with(
    question: Question,
    path: Path,
    graph: Graph,
    run: Callable[[dict[str, Array]], tuple[dict[int, Array], dict[str, Array]]],
) -> None:
    """Write what a function computes, which gives tensors by their values and final outputs."""
    with _written(path, question.reference, graph) as (archive, samples):
        for number, sample in enumerate(question.samples):
            inputs = _arrays(sample.file)
            seen, outputs = run(inputs)
            tensors = [from_graph(graph, key) for key in seen]
            for key, values in seen.items():
                _put(archive, f"{number}/t{key}", values)
            samples.append(_close_sample(archive, number, sample, tensors, outputs))


@contextlib.contextmanager
def _written(
    path: Path, model: Path, graph: Graph
) -> Iterator[tuple[zipfile.ZipFile, list[GoldenSample]]]:
    """Write beside the place of the file, and put it there when it is whole."""
    part = path.with_name(f".{path.name}.part")
    samples: list[GoldenSample] = []
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
            yield archive, samples
            meta = GoldenMeta(_FORMAT, graph, _digest(model), versions(), tuple(samples))
            _put(archive, _META, np.frombuffer(msgspec.json.encode(meta), np.uint8))
        part.replace(path)
    except OSError as error:
        raise ToolError(f"cannot be written ({error.strerror})", where=str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _record_sample(
    session: Session, archive: zipfile.ZipFile, number: int, sample: Sample
) -> GoldenSample:
    tensors = []
    for tensor, values in stream(session, sample.file):
        if values is not None and tensor.value >= 0 and values.dtype.kind == "f":
            _put(archive, f"{number}/t{tensor.value}", values)
            tensors.append(tensor)
    outputs = run_session(session, sample.file)
    return _close_sample(archive, number, sample, tensors, outputs)


def _close_sample(
    archive: zipfile.ZipFile,
    number: int,
    sample: Sample,
    tensors: list[TracedTensor],
    outputs: dict[str, Array],
) -> GoldenSample:
    inputs = _arrays(sample.file)
    for at, array in enumerate(inputs.values()):
        _put(archive, f"{number}/i{at}", array)
    for at, array in enumerate(outputs.values()):
        _put(archive, f"{number}/o{at}", array)
    return GoldenSample(sample.name, tuple(tensors), tuple(inputs), tuple(outputs))


def _arrays(file: Path) -> dict[str, Array]:
    with np.load(file, allow_pickle=False) as given:
        return {name: given[name] for name in given.files}


def _put(archive: zipfile.ZipFile, name: str, array: Array) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.save(file, array, allow_pickle=False)


def _digest(model: Path) -> str:
    return hashlib.sha256(model.read_bytes()).hexdigest()


def run_session(session: Session, inputs: Path) -> dict[str, Array]:
    """Run once without observation; return the outputs by name."""
    archive = session.folder / "unobserved.npz"
    order = {"do": "run", "inputs": str(inputs.resolve()), "outputs": str(archive)}
    answer = session.ask(order)
    with np.load(archive, allow_pickle=False) as arrays:
        return {name: arrays[str(place)] for place, name in enumerate(answer["outputs"])}


class Golden:
    """A golden file, opened: its head in memory, its tensors read when they are asked for."""

    def __init__(self, path: Path) -> None:
        try:
            self._archive = np.load(path, allow_pickle=False)
            text = self._archive[_META].tobytes()
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, AttributeError) as error:
            told = getattr(error, "strerror", None) or "it is not one that tipcheck wrote"
            hint = "write one with tipcheck debug MODEL --save-golden FILE.npz"
            raise UsageError(
                f"cannot be read as a golden file ({told})", where=str(path), hint=hint
            ) from None
        self.path = path
        try:
            self.meta = msgspec.json.decode(text, type=GoldenMeta)
        except (msgspec.DecodeError, json.JSONDecodeError) as error:
            raise UsageError(
                f"was written by another version of tipcheck ({error})",
                where=str(path),
                hint="record it again",
            ) from None

    def array(self, number: int, name: str) -> Array:
        """Return one array of a sample."""
        array: Array = self._archive[f"{number}/{name}"]
        return array

    def samples(self, folder: Path) -> tuple[Sample, ...]:
        """Write the recorded inputs into a folder, and return them as samples."""
        made = []
        for number, sample in enumerate(self.meta.samples):
            file = folder / f"golden_{number}.npz"
            arrays = {name: self.array(number, f"i{at}") for at, name in enumerate(sample.inputs)}
            np.savez(file, **arrays)  # type: ignore[arg-type]
            made.append(Sample(sample.name, file))
        return tuple(made)

    def close(self) -> None:
        """Close the file."""
        self._archive.close()


@contextlib.contextmanager
def beside_golden(
    golden: Golden, candidate: Execution, question: Question
) -> Iterator[BesideGolden]:
    """Load the candidate, and align it with what was recorded."""
    with candidate.start(question.samples[0].file) as session:
        yield BesideGolden(golden, session, graph_of(session), question)


class BesideGolden:
    """The same to a debug run as two executions side by side; one of them is a file."""

    def __init__(self, golden: Golden, session: Session, graph: Graph, question: Question) -> None:
        self._golden = golden
        self._session = session
        self._places = {sample.file: at for at, sample in enumerate(question.samples)}
        self.graphs = (golden.meta.graph, graph)
        self.alignment = oriented(align(*self.graphs), *self.graphs)

    def no_replay(self, model: Path) -> str:
        """Say why the ops that were recorded cannot be replayed from a model; empty if they can."""
        if _digest(model) != self._golden.meta.program:
            return "the golden file was recorded from another export"
        if not any(op.source >= 0 for op in self.graphs[0].ops):
            return "the golden file was recorded from an optimised program"
        return ""

    def run(self, inputs: Path) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return the recorded outputs and those of the candidate, unobserved."""
        place = self._places[inputs]
        names = self._golden.meta.samples[place].outputs
        expected = {name: self._golden.array(place, f"o{at}") for at, name in enumerate(names)}
        try:
            return expected, run_session(self._session, inputs)
        except CrashError as crash:
            raise CandidateCrashError(crash) from None

    def compare(
        self,
        inputs: Path,
        rules: Rules,
        choice: Look | None = None,
        on_row: Callable[[int, str], None] | None = None,
    ) -> Lockstep:
        """Run the candidate and compare its tensors with the recorded ones as they come."""
        place = self._places[inputs]
        seen = {tensor.value: tensor for tensor in self._golden.meta.samples[place].tensors}
        wanted = None if choice is None else choice.values
        pairs = {
            pairing.candidate: pairing
            for pairing in self.alignment.pairings
            if pairing.candidate is not None
            and pairing.baseline is not None
            and (wanted is None or pairing.candidate in wanted)
        }
        observer = Observer({"options": dict(choice.options) if choice else {"spool": ""}})
        rows, tensors = [], []
        stopped_by = ""
        outputs: dict[str, tuple[Array, Array]] = {}
        try:
            for tensor, values in stream(self._session, inputs, want=pairs.keys()):
                tensors.append(tensor)
                pairing = pairs.pop(tensor.value, None)
                if pairing is None or pairing.baseline is None:
                    continue
                partner = seen.get(pairing.baseline)
                if partner is None or values is None:
                    why = tensor.unreadable_because or "the golden file does not hold it"
                    rows.append(ComparedPair(pairing, tensor, partner, why_not=why))
                    continue
                ours = self._golden.array(place, f"t{pairing.baseline}")
                ours = ours.transpose(pairing.permutation) if pairing.permutation else ours
                verdict = judge_pair([partner.dtype, tensor.dtype], ours, values, rules)
                observer.compared(tensor, partner, values, ours)
                rows.append(ComparedPair(pairing, tensor, partner, verdict))
                if on_row is not None:
                    on_row(tensor.value, tensor.dtype)
            outputs = _paired(*self.run(inputs))
        except KeyboardInterrupt:
            self._session.kill()
            stopped_by = INTERRUPTED
        except (CrashError, CandidateCrashError) as crash:
            stopped_by = str(crash)
        return Lockstep(
            baseline=Trace("golden", tuple(seen.values())),
            candidate=Trace(self._session.run_mode, tuple(tensors)),
            rows=tuple(rows),
            unseen=(),
            outputs=outputs,
            seconds=(0.0, 0.0),
            observed=observer.finish(),
            complete=not stopped_by,
            stopped_by=stopped_by,
        )


def _paired(
    expected: Mapping[str, Array], actual: Mapping[str, Array]
) -> dict[str, tuple[Array, Array]]:
    return {
        name: (one, other)
        for (name, one), other in zip(expected.items(), actual.values(), strict=False)
    }
