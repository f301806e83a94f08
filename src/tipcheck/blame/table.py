"""The table of a debug run: every tensor, who introduced an error, who only passed it on.

The contract between ``blame``, which fills it, and ``report``, which shows it on the terminal and
writes it as a spreadsheet, CSV and JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tipcheck.backends.trace import TracedTensor
from tipcheck.compare.verdict import Measures, Status, TensorVerdict


@dataclass(frozen=True, slots=True)
class Introduced:
    """The error an op makes itself, when fed what it was really fed.

    Attributes:
        status: FAIL when it is more than its format explains and more than the baseline's own
            implementation would make; SUSPECT when it is near that; PASS; UNSUPPORTED when it could
            not be computed.
        measures: its output against the reference, NaN and infinity counted apart.
        reference: what computed the reference: ``float64``, ``baseline`` (a kernel without
            float64), empty when nothing could.
        expected_db: the signal to noise ratio from which on the format explains the error.
        own_db: the signal to noise ratio that the baseline's own implementation reaches on the same
            values; None where it was not needed to tell.
        covers: types of the baseline's ops that make up this value, in order.
        parameters: names of the parameters they use.
        reason: why it was judged like this, or why it could not be computed.
    """

    status: Status
    measures: Measures | None = None
    reference: str = ""
    expected_db: float | None = None
    own_db: float | None = None
    covers: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OpRow:
    """One tensor of the candidate, with the two errors that must not be confused.

    Attributes:
        tensor: the tensor.
        baseline: the tensor of the baseline that is the same mathematical value, if there is one.
        match: how the two were matched, or why there is none.
        status: the verdict on this row: that of the introduced error where there is one.
        propagated: its distance from the baseline, inherited error included.
        introduced: the error it makes itself; None where it was not asked for.
        sample: which input sample these numbers are of: the one with the worst error.
        note: what else a reader has to know: why there is no partner, first NaN, headroom.
    """

    tensor: TracedTensor
    baseline: TracedTensor | None
    match: str
    status: Status
    propagated: Measures | None = None
    introduced: Introduced | None = None
    sample: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Blamed:
    """One op that introduces an error, the worst first.

    Attributes:
        row: which row of the table.
        op_type: its type.
        tensor: name of the tensor it makes.
        layer_path: path of its layer.
        covers: types of the baseline's ops it does the work of.
        parameters: names of the parameters among them.
        excess_db: how many dB more error it makes than its format explains.
        evidence: what was seen, in one sentence.
    """

    row: int
    op_type: str
    tensor: str
    layer_path: str
    covers: tuple[str, ...]
    parameters: tuple[str, ...]
    excess_db: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether looking changed what was looked at.

    Attributes:
        unchanged: final outputs with and without observation are the same.
        memory_reuse: the verdict on the final outputs with memory reuse on, which observation
            needs switched off; None where it was not run.
        reason: what was compared and what came out.
    """

    unchanged: bool
    memory_reuse: Status | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A tensor of the baseline that the candidate has no partner for."""

    op_type: str
    name: str
    layer_path: str
    reason: str
    note: str


@dataclass(frozen=True, slots=True)
class TableCoverage:
    """How much was really looked at.

    Attributes:
        tensors: floating tensors of the candidate's program.
        chosen: those that were asked for.
        matched: those of them with a partner in the baseline.
        judged: those whose numbers were compared.
        replayed: those whose introduced error was computed.
        elements: elements compared, over all rows and samples.
        samples: input samples that were run.
    """

    tensors: int
    chosen: int
    matched: int
    judged: int
    replayed: int
    elements: int
    samples: int


@dataclass(frozen=True, slots=True)
class Table:
    """What ``tipcheck debug`` found.

    Attributes:
        model: the model that was judged.
        baseline_model: the model it was compared with; often the same.
        run_mode: how the first was run.
        baseline: how the second was run, or the golden file it was read from.
        status: the verdict: on the final outputs first, then on the ops.
        sentence: what is wrong and where it comes from, in words.
        rows: the candidate's tensors in op order.
        culprits: who introduces an error, the worst first; empty when nobody does, or when blame is
            withheld.
        outputs: the verdicts on the final outputs.
        unmatched: what is in the baseline only.
        coverage: how much was looked at.
        probe: whether observing changed the answers.
        thresholds: what was judged by, as name and text.
        versions: of everything that takes part, as name and text.
        notes: what else a reader has to know.
        complete: False when the run ended early; the rows are those that were done by then.
        samples: names of the input samples, in the order of ``OpRow.sample``.
    """

    schema: ClassVar[str] = "tipcheck.table/1"

    model: str
    baseline_model: str
    run_mode: str
    baseline: str
    status: Status
    sentence: str
    rows: tuple[OpRow, ...]
    culprits: tuple[Blamed, ...]
    outputs: tuple[TensorVerdict, ...]
    unmatched: tuple[Unmatched, ...]
    coverage: TableCoverage
    probe: Probe
    thresholds: dict[str, str]
    versions: dict[str, str]
    notes: tuple[str, ...] = ()
    complete: bool = True
    samples: tuple[str, ...] = ()
