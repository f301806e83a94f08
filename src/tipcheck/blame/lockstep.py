"""Runs two executions at the same time and compares their tensors as they are made.

Alignment comes first, from the two graphs; then only tensors that have a partner are moved, one at
a time, through a bounded piece of shared memory. However large the model is, no more than that is
held beyond what the two executions hold themselves.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tipcheck.backends.trace import Trace, TracedTensor
from tipcheck.backends.tracing.crash import CrashError
from tipcheck.backends.tracing.execution import POOL, graph_of, shared_pool, traced_of
from tipcheck.backends.tracing.pool import knock
from tipcheck.backends.tracing.run_modes import precision_of
from tipcheck.backends.tracing.session import DiedError
from tipcheck.blame.align import align
from tipcheck.blame.alignment import Pairing
from tipcheck.blame.orienting import oriented
from tipcheck.compare.verdict import TensorVerdict
from tipcheck.errors import TipcheckError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from tipcheck.backends.graph import Graph
    from tipcheck.backends.tracing.execution import Execution
    from tipcheck.backends.tracing.session import Session
    from tipcheck.blame.alignment import Alignment
    from tipcheck.compare.judge import Rules

    Array = npt.NDArray[Any]

_LEAST = 8 << 20
_SHARE = 4
INTERRUPTED = "interrupted"
"""The pool is at most this part of the memory that was allowed."""


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """One row: a pairing, and what the comparison of its two tensors gave.

    Attributes:
        pairing: how the two belong together.
        candidate: the candidate's tensor as it was seen; None where it was not.
        baseline: likewise.
        verdict: of the comparison; None where nothing was compared.
        why_not: why nothing was compared.
    """

    pairing: Pairing
    candidate: TracedTensor | None
    baseline: TracedTensor | None
    verdict: TensorVerdict | None = None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Lockstep:
    """What came out of running two executions side by side.

    Attributes:
        baseline: what the baseline computed.
        candidate: what the candidate computed.
        rows: in the candidate's op order.
        unseen: pairings whose tensors exist in the programs, but are never shown: by-products, and
            what an op keeps to itself.
        outputs: final outputs by name, (baseline's, candidate's), in the model's order.
        seconds: how long each forward pass took while it was watched.
        observed: what the caller's observer gave back.
        complete: whether both ran to their end.
        stopped_by: what ended it early.
    """

    baseline: Trace
    candidate: Trace
    rows: tuple[ComparedPair, ...]
    unseen: tuple[Pairing, ...]
    outputs: dict[str, tuple[Array, Array]]
    seconds: tuple[float, float]
    observed: Any = None
    complete: bool = True
    stopped_by: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to compare, and with how much.

    Attributes:
        values: ids of the candidate's values; None means all that have a partner.
        memory: bytes that may be used beside the executions themselves; 0 for the default.
        observer: ``module:name`` of a class that sees each pair in the baseline's worker. It is
            made with the order, and has ``compared(candidate, baseline, candidate_values,
            baseline_values)`` and ``finish()``, whose JSON value comes back as ``observed``. Its
            arrays are views, good until it returns.
        options: what the observer finds in its order as ``options``, plain JSON.
    """

    values: frozenset[int] | None = None
    memory: int = 0
    observer: str = ""
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Heard:
    """What the two workers tell while they run."""

    baseline: list[TracedTensor] = field(default_factory=list)
    candidate: list[TracedTensor] = field(default_factory=list)
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    observed: Any = None


@contextlib.contextmanager
def side_by_side(
    baseline: Execution, candidate: Execution, inputs: Path | None = None
) -> Iterator[SideBySide]:
    """Load two executions at the same time, each in a worker of its own, and align them.

    Args:
        baseline: what to compare with.
        candidate: what is judged.
        inputs: an ``.npz`` file for modes that look at inputs before they are made.
    """
    with baseline.start(inputs) as one, candidate.start(inputs) as other:
        with ThreadPoolExecutor(2) as threads:
            asked = [threads.submit(graph_of, session) for session in (one, other)]
            try:
                wait(asked)
            except KeyboardInterrupt:
                one.kill()
                other.kill()
                raise
        failures = [error for error in (future.exception() for future in reversed(asked)) if error]
        if failures:
            # What was asked for is what a user knows; and a reason says more than a death.
            raise min(failures, key=lambda error: isinstance(error, DiedError))
        graphs = [future.result() for future in asked]
        yield SideBySide((one, other), (graphs[0], graphs[1]))


class CandidateCrashError(TipcheckError):
    """The candidate does not run to its end, which is a verdict on it; the baseline does.

    Attributes:
        crash: what happened.
        alive: whether its worker is still there and can be asked for what it computes before.
    """

    def __init__(self, crash: CrashError) -> None:
        super().__init__(crash.what, where=crash.where, hint=crash.hint)
        self.crash = crash
        self.alive = not isinstance(crash, DiedError)


class SideBySide:
    """Two workers, loaded and aligned; ``compare`` may be called often.

    Args:
        sessions: the baseline's and the candidate's.
        graphs: what each of them runs.
    """

    def __init__(self, sessions: tuple[Session, Session], graphs: tuple[Graph, Graph]) -> None:
        self._sessions = sessions
        self.graphs = graphs
        self.alignment: Alignment = oriented(align(*graphs), *graphs)

    def run(self, inputs: Path) -> tuple[dict[str, Array], dict[str, Array]]:
        """Run both without observation, one after the other; return their outputs."""
        one, other = (_outputs(answer) for answer in self._plainly(inputs))
        return one, other

    def time_plain(self, inputs: Path) -> tuple[float, float]:
        """Run both without observation, one after the other; return the seconds each took."""
        one, other = (float(answer["seconds"]) for answer in self._plainly(inputs))
        return one, other

    def _plainly(self, inputs: Path) -> list[dict[str, Any]]:
        baseline, candidate = self._sessions
        first = plainly(baseline, inputs)
        try:
            return [first, plainly(candidate, inputs)]
        except CrashError as crash:
            raise CandidateCrashError(crash) from None

    def compare(
        self,
        inputs: Path,
        rules: Rules,
        choice: Choice | None = None,
        on_row: Callable[[int, str], None] | None = None,
    ) -> Lockstep:
        """Run both at the same time and compare what has a partner.

        Args:
            inputs: an ``.npz`` file.
            rules: how to judge.
            choice: what to compare and who looks on; None compares everything.
            on_row: called with the candidate's value of each row that is done, and the element
                type it was seen in; the program can say another.
        """
        choice = choice or Choice()
        pairs = [
            pairing
            for pairing in self.alignment.pairings
            if pairing.candidate is not None
            and pairing.baseline is not None
            and (choice.values is None or pairing.candidate in choice.values)
        ]
        heard = _Heard()
        size = max(_LEAST, choice.memory // _SHARE) if choice.memory else POOL
        with shared_pool(min(size, POOL)) as (pool, folder):
            common = {
                "peer": str(folder / "peer"),
                "pool": str(pool),
                "inputs": _there(inputs),
            }
            orders = self._orders(common, pairs, rules, choice)

            def on_baseline(event: dict[str, Any]) -> None:
                _hear(event, heard.baseline, heard, on_row)

            def on_candidate(event: dict[str, Any]) -> None:
                _hear(event, heard.candidate, heard, on_row)

            with ThreadPoolExecutor(2) as threads:
                asked = [
                    threads.submit(session.ask, order, listener)
                    for session, order, listener in zip(
                        self._sessions, orders, (on_baseline, on_candidate), strict=True
                    )
                ]
                interrupted = self._release(asked, str(folder / "peer"))
                failures = [error for error in (one.exception() for one in asked) if error]
        for failure in failures:
            if isinstance(failure, UsageError):
                raise failure
        answers = [] if failures else [one.result() for one in asked]
        told = [INTERRUPTED] if interrupted else [str(failure) for failure in failures]
        return self._result(pairs, heard, answers, told)

    def _release(self, asked: list[Future[dict[str, Any]]], peer: str) -> bool:
        """Return when both have ended; a side that waits for one that is gone is let go.

        Ctrl-C ends both, and what they have told by then is kept; say whether that was so.
        """
        try:
            wait(asked, return_when=FIRST_EXCEPTION)
        except KeyboardInterrupt:
            for session in self._sessions:
                session.kill()
            wait(asked)
            return True
        if asked[0].done() and asked[0].exception():
            self._sessions[1].kill()
        elif asked[1].done() and asked[1].exception():
            knock(peer)
        return False

    def _orders(
        self,
        common: dict[str, Any],
        pairs: list[Pairing],
        rules: Rules,
        choice: Choice,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        one, other = self._sessions
        compare = {
            "do": "compare",
            **common,
            "outputs": str(one.folder / "outputs.npz"),
            "judge": "tipcheck.blame.comparer:Comparer",
            "pairs": [[pair.candidate, pair.baseline, list(pair.permutation)] for pair in pairs],
            "inputs_of_baseline": self.graphs[0].inputs,
            "rules": {"rtol": rules.rtol, "atol": rules.atol, "equal_nan": rules.equal_nan},
            "precision": precision_of(other.run_mode),
            "observer": choice.observer,
            "options": choice.options,
        }
        send = {
            "do": "send",
            **common,
            "outputs": str(other.folder / "outputs.npz"),
            "want": sorted({pair.candidate for pair in pairs if pair.candidate is not None}),
        }
        return compare, send

    def _result(
        self, pairs: list[Pairing], heard: _Heard, answers: list[Any], failures: list[str]
    ) -> Lockstep:
        outputs: dict[str, tuple[Array, Array]] = {}
        if not failures:
            ours, theirs = (_outputs(answer) for answer in answers)
            outputs = {
                name: (one, other)
                for (name, one), other in zip(ours.items(), theirs.values(), strict=False)
            }
        ones = {tensor.value: tensor for tensor in reversed(heard.baseline)}
        others = {tensor.value: tensor for tensor in reversed(heard.candidate)}
        rows = [
            self._explained(
                _row(pair, ones.get(pair.baseline or 0), others.get(pair.candidate or 0), heard)
            )
            for pair in pairs
        ]
        seen = [row for row in rows if row.candidate is not None]
        seconds = [float(answer["seconds"]) for answer in answers]
        return Lockstep(
            baseline=Trace(self._sessions[0].run_mode, tuple(heard.baseline)),
            candidate=Trace(self._sessions[1].run_mode, tuple(heard.candidate)),
            rows=tuple(sorted(seen, key=_place)),
            unseen=tuple(row.pairing for row in rows if row.candidate is None),
            outputs=outputs,
            seconds=(seconds[0], seconds[1]) if len(seconds) == 2 else (0.0, 0.0),
            observed=heard.observed,
            complete=not failures,
            stopped_by="; ".join(failures),
        )

    def _explained(self, row: ComparedPair) -> ComparedPair:
        """Return a row with the reason why its partner was not shown, where the program says it."""
        key = row.pairing.baseline
        if row.verdict is not None or row.baseline is not None or key is None:
            return row
        op = self.graphs[0].op_of(key)
        if op is None or len(op.results) < 2:
            return row
        return replace(row, why_not=f"{op.type} gives a vector, whose parts are never shown")


def plainly(session: Session, inputs: Path) -> dict[str, Any]:
    """Ask for a run without observation."""
    outputs = str(session.folder / "unobserved.npz")
    return session.ask({"do": "run", "inputs": _there(inputs), "outputs": outputs})


def _hear(
    event: dict[str, Any],
    tensors: list[TracedTensor],
    heard: _Heard,
    on_row: Callable[[int, str], None] | None,
) -> None:
    if "tensor" in event:
        tensors.append(traced_of(event))
    elif "row" in event and "observed" in event["row"]:
        heard.observed = event["row"]["observed"]
    elif "row" in event:
        heard.rows[event["row"]["candidate"]] = event["row"]
        if on_row is not None:
            on_row(event["row"]["candidate"], event["row"].get("dtype", ""))


def _row(
    pair: Pairing, baseline: TracedTensor | None, candidate: TracedTensor | None, heard: _Heard
) -> ComparedPair:
    told = heard.rows.get(pair.candidate if pair.candidate is not None else -1)
    if told is None or "missing" in told:
        side = "candidate" if candidate is None else "baseline"
        return ComparedPair(pair, candidate, baseline, why_not=f"the {side} did not show it")
    if told["verdict"] is None:
        return ComparedPair(pair, candidate, baseline, why_not=told["unreadable"])
    verdict = msgspec.convert(told["verdict"], TensorVerdict, strict=False)
    return ComparedPair(pair, candidate, baseline, verdict)


def _place(row: ComparedPair) -> int:
    return row.candidate.index if row.candidate is not None else -1


def _there(path: Path) -> str:
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path), hint="give an .npz file")
    return str(path.resolve())


def _outputs(answer: dict[str, Any]) -> dict[str, Array]:
    with np.load(answer["archive"], allow_pickle=False) as arrays:
        return {name: arrays[str(place)] for place, name in enumerate(answer["outputs"])}
