"""Answers a debug question: two executions side by side, replays on the way, a table at the end."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.replay.replaying import Replayer
from tipcheck.backends.tracing.execution import Execution
from tipcheck.backends.tracing.run_modes import DYGRAPH, default_baseline
from tipcheck.blame import budget
from tipcheck.blame.amplified import Asked, explained, in_question
from tipcheck.blame.choice import choose, narrow
from tipcheck.blame.doubt import without_contradictions
from tipcheck.blame.finals import Finals
from tipcheck.blame.golden import BesideGolden, Golden, beside_golden
from tipcheck.blame.introduced import Computer
from tipcheck.blame.lockstep import (
    INTERRUPTED,
    CandidateCrashError,
    SideBySide,
    side_by_side,
)
from tipcheck.blame.lockstep import Choice as Look
from tipcheck.blame.question import Check, Question, Sample, params_of
from tipcheck.blame.replays import Replays
from tipcheck.blame.rows import compared_row, from_graph, in_op_order, left_over, unmatched_rows
from tipcheck.blame.spool import OBSERVER, Spool
from tipcheck.blame.surroundings import thresholds, versions
from tipcheck.blame.table import OpRow, Table, TableCoverage
from tipcheck.blame.verdicts import annotate, blame, crash_told, overall, sentence, worse
from tipcheck.compare.verdict import Status
from tipcheck.errors import TipcheckError, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from tipcheck.backends.graph import Graph
    from tipcheck.blame.lockstep import Lockstep
    from tipcheck.blame.table import Introduced
    from tipcheck.compare.budget import Budget

    Array = npt.NDArray[Any]

Say = Callable[[str], None]


def investigate(question: Question, say: Say = lambda _: None) -> Table:
    """Answer a question.

    Raises:
        UsageError: what was asked for cannot be.
        ToolError: a model could not be run at all. What breaks later ends in a table that says so.
    """
    with tempfile.TemporaryDirectory(prefix="tipcheck-") as folder, contextlib.ExitStack() as stack:
        say("loading the models")
        inquiry = _prepared(question, Path(folder), stack, say)
        try:
            inquiry.run()
        except KeyboardInterrupt:
            inquiry.complete = False
            inquiry.notes.append("interrupted: the table holds what was done by then")
        return inquiry.table()


def _prepared(question: Question, folder: Path, stack: contextlib.ExitStack, say: Say) -> Inquiry:
    """Load what takes part; the stack ends it."""
    candidate = Execution(question.model, question.run_mode, question.settings)
    side: SideBySide | BesideGolden
    refusal = ""
    if question.golden is not None:
        golden = Golden(question.golden)
        stack.callback(golden.close)
        question = replace(question, samples=golden.samples(folder))
        mode = f"golden file {question.golden}"
        side = stack.enter_context(beside_golden(golden, candidate, question))
        refusal = side.no_replay(question.reference)
    else:
        mode = question.baseline or default_baseline(question.run_mode)
        if mode == DYGRAPH:
            refusal = "a layer has no exported program; from Python, give it as baseline="
        reference = Execution(question.reference, mode, question.baseline_settings)
        first = question.samples[0].file
        side = stack.enter_context(side_by_side(reference, candidate, first))
    inquiry = Inquiry(question, side, folder, say, baseline_mode=mode)
    if question.replay:
        try:
            if refusal:
                raise ToolError(refusal)
            inquiry.replayer = stack.enter_context(inquiry.make_replayer())
        except TipcheckError as refused:
            inquiry.notes.append(f"introduced errors could not be computed: {refused}")
    return inquiry


@dataclass
class Inquiry:
    """What is known so far of one question; interrupted at any time, it still gives a table."""

    question: Question
    side: SideBySide | BesideGolden
    folder: Path
    say: Say
    replayer: Replayer | None = None
    baseline_mode: str = ""
    complete: bool = True
    notes: list[str] = field(default_factory=list)
    rows: dict[int, OpRow] = field(default_factory=dict)
    told: dict[int, str] = field(default_factory=dict)
    crash: CandidateCrashError | None = None
    elements: int = 0
    done: int = 0

    def __post_init__(self) -> None:
        """Choose the tensors; None stands for all of them."""
        self.baseline, self.candidate = self.side.graphs
        choice = self.question.choice
        self.chosen = (
            None
            if choice.is_all
            else choose(self.candidate, self.side.alignment, choice, self.baseline)
        )
        self.form = _format_of(self.candidate, self.question.run_mode)
        self.finals = Finals(self.question, self.baseline, self.form, self.folder, self.say)

    def make_replayer(self) -> Replayer:
        """Return the worker that computes pieces of the baseline."""
        folder = self.folder / "replay"
        folder.mkdir()
        model = self.question.reference
        params = params_of(model, self.question.baseline_settings)
        return Replayer(model, params, self.baseline, folder)

    def run(self) -> None:
        """Compare every sample; then, where only some tensors were looked at, look closer."""
        self.finals.replayer = self.replayer
        for number, sample in enumerate(self.question.samples):
            self._sample(number, sample, self.chosen)
            self.done += 1
            if not self.complete:
                return
        closer = self._closer()
        if closer:
            self.say(f"looking at {len(closer)} tensors before the first bad one")
            self.chosen = [*(self.chosen or ()), *closer]
            for number, sample in enumerate(self.question.samples):
                self._sample(number, sample, self.chosen, again=True)
        self._explain_distances()

    def _explain_distances(self) -> None:
        """Where rows are far apart and nobody is to blame, hold both sides against float64."""
        far = in_question(self.rows.values())
        if not far or self.replayer is None or not isinstance(self.side, SideBySide):
            return
        number = far[0].sample
        sample, question = self.question.samples[number], self.question
        self.say("looking where rounding was amplified")
        inputs = self._inputs(sample)
        asked = Asked(
            self.side, self.replayer, inputs, sample.file, question.rules, question.memory
        )
        rows = [row for row in far if row.sample == number]
        for key, told in explained(asked, rows, self.folder).items():
            row = self.rows[key]
            note = "; ".join(part for part in (row.note, told) if part)
            self.rows[key] = replace(row, note=note)

    def _closer(self) -> list[int]:
        if self.question.choice.every == 1 or not self.question.narrowing or self.chosen is None:
            return []
        bad = next((key for key in self.chosen if _is_bad(self.rows.get(key))), None)
        if bad is None:
            return []
        everything = choose(
            self.candidate,
            self.side.alignment,
            replace(self.question.choice, every=1),
            self.baseline,
        )
        return narrow(everything, self.rows, bad)

    def _sample(
        self, number: int, sample: Sample, chosen: list[int] | None, *, again: bool = False
    ) -> None:
        told = f" {number + 1} of {len(self.question.samples)}"
        self.say(f"running without observation, sample{told}")
        try:
            expected, unobserved = self.side.run(sample.file)
        except CandidateCrashError as crash:
            self._crashed(crash, number, sample, chosen)
            return
        self.say(f"comparing tensors, sample{told}")
        step, introduced = self.compare(sample, chosen)
        for row in self._rows_of(step, introduced, number):
            key = row.tensor.value
            old = None if again and self.rows.get(key) is None else self.rows.get(key)
            self.rows[key] = row if old is None else worse(old, row)
        if not step.complete:
            self.complete = False
            self.notes.append(f"the run ended early: {step.stopped_by}")
        if not again:
            self.finals.take(sample, (expected, unobserved), step, self._inputs(sample))

    def _crashed(
        self, crash: CandidateCrashError, number: int, sample: Sample, chosen: list[int] | None
    ) -> None:
        """Keep a crash of the candidate, and compare what it computes before it."""
        self.crash, self.complete = crash, False
        if crash.alive:
            self.say("comparing what was computed before it failed")
            step, introduced = self.compare(sample, chosen)
            for row in self._rows_of(step, introduced, number):
                self.rows[row.tensor.value] = row

    def compare(
        self, sample: Sample, chosen: list[int] | None = None
    ) -> tuple[Lockstep, dict[int, Introduced]]:
        """Compare the chosen tensors on one sample; None stands for all of them."""
        check = self.question.check
        with self._spool() as spool, self._replays(sample, chosen, spool) as replays:
            options = {"spool": str(spool.folder) if spool else "", "both": check is not None}

            def on_row(key: int, dtype: str) -> None:
                if check is not None and spool is not None:
                    self._checked(check, spool, key)
                if replays is not None:
                    replays.row(key, dtype)

            step = self.side.compare(
                sample.file,
                self.question.rules,
                Look(
                    values=None if chosen is None else frozenset(chosen),
                    memory=self.question.memory,
                    observer=OBSERVER,
                    options=options,
                ),
                on_row,
            )
            if replays is not None:
                self.say("computing introduced errors")
                step = self._finished(step, replays)
        return step, replays.found if replays is not None else {}

    @staticmethod
    def _finished(step: Lockstep, replays: Replays) -> Lockstep:
        """Wait for the replays; after Ctrl-C only for the one that is being computed."""
        if step.stopped_by == INTERRUPTED:
            replays.stop()
        try:
            replays.finish()
        except KeyboardInterrupt:
            replays.stop()
            replays.finish()
            return replace(step, complete=False, stopped_by=INTERRUPTED)
        return step

    @contextlib.contextmanager
    def _spool(self) -> Iterator[Spool | None]:
        if self.replayer is None and self.question.check is None:
            yield None
            return
        spool = Spool(self.folder / "spool")
        spool.folder.mkdir()
        try:
            yield spool
        finally:
            spool.clear()

    def _checked(self, check: Check, spool: Spool, key: int) -> None:
        """Show one pair to the user's own check, and keep what it says."""
        partner = self.side.alignment.partners.get(key)
        if partner is None or not spool.arrived(key):
            return
        tensors = from_graph(self.candidate, key), from_graph(self.baseline, partner)
        try:
            told = check(*tensors, spool.get(key), spool.partner(key))
        except Exception as error:  # noqa: BLE001 - the user's own code
            told = f"the check raised {type(error).__name__}: {error}"
        if told:
            self.told[key] = str(told)

    @contextlib.contextmanager
    def _replays(
        self, sample: Sample, chosen: list[int] | None, spool: Spool | None
    ) -> Iterator[Replays | None]:
        if self.replayer is None or spool is None:
            yield None
            return
        computer = Computer(self.baseline, self.replayer, spool, self._inputs(sample))
        pairings = [
            pairing
            for pairing in self.side.alignment.pairings
            if chosen is None or pairing.candidate in chosen
        ]
        replays = Replays((self.baseline, self.candidate), pairings, computer, spool)
        replays.start()
        yield replays

    def _inputs(self, sample: Sample) -> dict[int, Path]:
        """Write the model's inputs where the replayer can take them from."""
        files = {}
        with np.load(sample.file, allow_pickle=False) as arrays:
            for name, value in self.baseline.inputs.items():
                if name in arrays.files:
                    files[value] = self.folder / f"input_{value}.npy"
                    np.save(files[value], arrays[name])
        return files

    def _rows_of(
        self, step: Lockstep, introduced: dict[int, Introduced], number: int
    ) -> Iterator[OpRow]:
        observed = {**(step.observed or {}), "told": {str(k): v for k, v in self.told.items()}}
        for pair in step.rows:
            key = pair.pairing.candidate
            made = introduced.get(key) if key is not None else None
            row = compared_row(pair, self.side.graphs, made, observed, number)
            self.elements += row.propagated.compared if row.propagated else 0
            yield row

    def table(self) -> Table:
        """Return what is known."""
        missing = unmatched_rows(self.side.alignment, self.candidate, self.chosen)
        half = self.form.precision == "float16"
        ordered = in_op_order([*self.rows.values(), *missing])
        rows = annotate(without_contradictions(ordered, self.candidate), half=half)
        coverage = self._coverage(rows)
        outputs = tuple(self.finals.verdicts.values())
        probe = self.finals.probe
        culprits = blame(rows) if probe.unchanged else ()
        status = overall(self.finals.status, rows, probe, coverage)
        told = sentence(outputs, status, culprits, probe, coverage)
        broken = probe.memory_reuse in (Status.FAIL, Status.SUSPECT, Status.CRASH)
        if broken and self.finals.status is Status.PASS:
            status = Status.FAIL
            told = "the final outputs are wrong only with memory reuse on: that is the cause"
        if self.crash is not None:
            crash, status = self.crash, Status.CRASH
            told = crash_told(self.question.run_mode, crash.crash, rows, alive=crash.alive)
        if not self.complete and status is Status.PASS:
            status, told = Status.FAIL, f"the run was not completed; so far: {told}"
        return Table(
            model=str(self.question.model),
            baseline_model=str(self.question.reference),
            run_mode=self.question.run_mode,
            baseline=self.baseline_mode,
            status=status,
            sentence=told,
            rows=rows,
            culprits=culprits,
            outputs=outputs,
            unmatched=left_over(self.side.alignment, self.baseline),
            coverage=coverage,
            probe=probe,
            thresholds=thresholds(self.question.rules, self.form),
            versions=versions(),
            notes=(*self.notes, *self.finals.notes),
            complete=self.complete,
            samples=tuple(sample.name for sample in self.question.samples),
        )

    def _coverage(self, rows: tuple[OpRow, ...]) -> TableCoverage:
        floating = [
            value
            for op in self.candidate.ops
            for value in op.results
            if self.candidate.values[value].floating
        ]
        judged = [row for row in rows if row.propagated is not None]
        return TableCoverage(
            tensors=len(rows) if self.chosen is None else len(floating),
            chosen=len(rows),
            matched=sum(row.baseline is not None for row in rows),
            judged=len(judged),
            replayed=sum(
                row.introduced is not None and row.introduced.status is not Status.UNSUPPORTED
                for row in rows
            ),
            elements=self.elements,
            samples=self.done,
        )


def _is_bad(row: OpRow | None) -> bool:
    return row is not None and row.status in (Status.FAIL, Status.SUSPECT)


def _format_of(graph: Graph, run_mode: str) -> Budget:
    """Return the format a candidate computes in: what its mode says, or its coarsest tensor."""
    by_mode = {"fp16": "float16", "bf16": "bfloat16", "int8": "int8"}
    named = by_mode.get(run_mode.rpartition("_")[2], "float32")
    return budget.format_of(named, *{value.dtype for value in graph.values if value.floating})
