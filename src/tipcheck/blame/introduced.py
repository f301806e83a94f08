"""The error an op makes itself: its output against what its own inputs should have become.

The reference is the baseline's ops between the observed tensors, computed in float64 from the
values the candidate really had. An error that came in with the inputs is in both and cancels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tipcheck.backends.replay.replaying import Order
from tipcheck.blame import budget
from tipcheck.blame.segments import Segment
from tipcheck.blame.table import Introduced
from tipcheck.compare.evidence import measures_of
from tipcheck.compare.exact import count_differences
from tipcheck.compare.measure import measure
from tipcheck.compare.tensors import MemoryTensor
from tipcheck.compare.tolerance import threshold_for
from tipcheck.compare.verdict import Status

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from tipcheck.backends.graph import Graph
    from tipcheck.backends.replay.replaying import Replayer
    from tipcheck.blame.spool import Spool
    from tipcheck.compare.verdict import Measures

    Array = npt.NDArray[Any]

_MOVES = frozenset(
    {
        "assign",
        "cast",
        "combine",
        "concat",
        "embedding",
        "expand",
        "expand_v2",
        "fill_constant",
        "flatten",
        "flatten_contiguous_range",
        "flip",
        "full",
        "full_int_array",
        "full_with_tensor",
        "gather",
        "lookup_table_v2",
        "pad",
        "pad3d",
        "reshape",
        "reshape2",
        "roll",
        "shape",
        "shape64",
        "share_data",
        "slice",
        "split",
        "squeeze",
        "squeeze2",
        "stack",
        "strided_slice",
        "tile",
        "transpose",
        "transpose2",
        "unbind",
        "unsqueeze",
        "unsqueeze2",
    }
)
"""Ops that round nothing."""


@dataclass(frozen=True, slots=True)
class Task:
    """One row whose introduced error is to be computed.

    Attributes:
        candidate: the tensor to judge, as its value in the candidate's graph.
        target: the value of the baseline that it should be.
        segment: what lies between it and the observed tensors before it.
        sources: the candidate's tensor for every input of the segment.
        permutations: axes that bring a tensor of the candidate (by its value) into the baseline's
            axis order, where that differs.
        dtypes: element types of the tensor and of what it is made from, the coarsest of which
            decides what is explained.
        moved_from: the tensor it only is another form of; None where something was computed.
    """

    candidate: int
    target: int
    segment: Segment
    sources: Mapping[int, int]
    permutations: Mapping[int, tuple[int, ...]]
    dtypes: tuple[str, ...]
    moved_from: int | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """A row whose reference is being computed; without an order nothing had to be."""

    task: Task
    order: Order | None = None
    ticket: int = 0


class Computer:
    """Computes introduced errors: while one is judged, the reference of the next is computed."""

    def __init__(
        self, graph: Graph, replayer: Replayer, spool: Spool, inputs: Mapping[int, Path]
    ) -> None:
        """Prepare.

        Args:
            graph: the baseline's.
            replayer: computes pieces of it.
            spool: where the candidate's tensors are kept.
            inputs: files of the model's inputs, by their values in that graph.
        """
        self._graph = graph
        self._replayer = replayer
        self._spool = spool
        self._inputs = inputs
        self._folder = spool.folder
        self._begun = 0

    def begin(self, task: Task) -> Begun:
        """Have the reference of one row computed, without waiting for it."""
        if task.moved_from is not None:
            return Begun(task)
        self._begun += 1
        # The reference before it may still be looked at.
        order = self._order(task, f"reference_{self._begun % 2}.npy")
        return Begun(task, order, self._replayer.send(order))

    def finish(self, begun: Begun) -> Introduced:
        """Return the introduced error of one row, or why there is none."""
        task = begun.task
        covers = tuple(f"{self._graph.ops[at].type}:{at}" for at in task.segment.ops)
        plain = Introduced(Status.UNSUPPORTED, covers=covers, parameters=task.segment.parameters)
        actual = self._spool.get(task.candidate)
        if task.moved_from is not None:
            source = self._spool.get(task.moved_from)
            return self._judged(task, plain, source, actual, "float64")
        assert begun.order is not None  # noqa: S101 - it was asked for
        answer = self._replayer.receive(begun.ticket)
        order = begun.order
        if answer.error:
            # No float64 kernel, or none that this program knows: the baseline's own one then.
            order = self._order(task, "own.npy", double=False)
            second = self._replayer.replay(order)
            answer = answer if second.error else second
        if answer.error:
            return replace(plain, reason=answer.error)
        made: Array = np.load(order.out, mmap_mode="r")
        how = "float64" if answer.double else "baseline"
        return self._judged(
            task, plain, self._oriented(task, made, actual, answer.axes), actual, how
        )

    def _order(self, task: Task, name: str, *, double: bool = True, rounded: bool = False) -> Order:
        given = {
            value: str(self._inputs[value])
            for value in task.segment.inputs
            if value in self._inputs
        }
        for value, key in task.sources.items():
            if key not in self._spool:
                continue
            given[value] = str(self._spool.path(key))
        axes = {
            value: task.permutations[key]
            for value, key in task.sources.items()
            if key in task.permutations
        }
        out = str(self._folder / name)
        return Order(task.candidate, task.target, given, out, double, rounded, axes)

    def _oriented(self, task: Task, made: Array, actual: Array, axes: tuple[int, ...]) -> Array:
        """Return a reference in the axis order of the tensor it is held against.

        Args:
            task: the row.
            made: the value in the order of the exported program.
            actual: the candidate's tensor.
            axes: what turns the former into the order of the baseline's program.
        """
        turned = made
        for order in (axes, task.permutations.get(task.candidate, ())):
            turned = turned.transpose(order) if len(order) == turned.ndim else turned
        straight = turned.shape != actual.shape and made.shape == actual.shape
        return made if straight else turned

    def _judged(
        self, task: Task, plain: Introduced, made: Array, actual: Array, how: str
    ) -> Introduced:
        if made.shape != actual.shape:
            reason = f"its shape is {list(actual.shape)} and should be {list(made.shape)}"
            return replace(plain, status=Status.FAIL, reference=how, reason=reason)
        if actual.dtype.kind != "f":
            return self._exact(plain, made, actual, how)
        found = apart(made, actual, task.dtypes[0])
        form = budget.format_of(*task.dtypes)
        roundings = sum(
            self._graph.ops[at].type.rpartition(".")[2].rstrip("_") not in _MOVES
            for at in task.segment.ops
        )
        expected = budget.expected_db(form, roundings)
        result = replace(plain, measures=found, reference=how, expected_db=expected)
        if new_nonfinite(found):
            return replace(result, status=Status.FAIL, reason=nonfinite_words(found))
        if not found.compared:
            reason = "NaN or infinity came in with its inputs"
            return replace(result, status=Status.PASS, reason=reason)
        reached = found.sqnr_db if found.sqnr_db is not None else float("-inf")
        status = budget.judge_db(reached, expected)
        if status is Status.PASS:
            return replace(result, status=status)
        return self._second_look(task, result, made, reached, status)

    def _second_look(
        self, task: Task, result: Introduced, made: Array, reached: float, status: Status
    ) -> Introduced:
        """Ask whether the baseline's own implementation does any better on the same values."""
        assert result.expected_db is not None  # noqa: S101 - it was judged by it
        form = budget.format_of(*task.dtypes)
        narrow = form.one_op_db < budget.format_of("float32").one_op_db
        reason = f"{reached:.1f} dB, {form.precision} explains {result.expected_db:.1f} dB"
        if task.moved_from is not None or (result.reference != "float64" and not narrow):
            return replace(result, status=status, reason=reason)
        order = self._order(task, "second.npy", double=narrow, rounded=narrow)
        answer = self._replayer.replay(order)
        if answer.error:
            return replace(result, status=status, reason=reason)
        other: Array = np.load(order.out, mmap_mode="r")
        other = self._oriented(task, other, made, answer.axes)
        if other.shape != made.shape:
            return replace(result, status=status, reason=reason)
        own = apart(made, other, "float64").sqnr_db
        slack = budget.ROUNDING_DB if narrow else budget.OWN_ERROR_DB
        if own is not None and reached >= own - slack:
            nature = "rounded parameters alone give" if narrow else "the baseline itself reaches"
            reason = f"{reason}, {nature} {own:.1f} dB"
            return replace(result, status=Status.PASS, own_db=own, reason=reason)
        return replace(result, status=status, own_db=own, reason=reason)

    @staticmethod
    def _exact(plain: Introduced, made: Array, actual: Array, how: str) -> Introduced:
        same_kind = made if made.dtype == actual.dtype else made.astype(actual.dtype)
        tally = count_differences(MemoryTensor(np.asarray(same_kind)), MemoryTensor(actual))
        status = Status.FAIL if tally.mismatched else Status.PASS
        reason = (
            f"{tally.mismatched:,} of {actual.size:,} elements differ" if tally.mismatched else ""
        )
        return replace(
            plain,
            status=status,
            measures=measures_of(tally, tally.mismatched, None),
            reference=how,
            reason=reason,
        )


def apart(expected: Array, actual: Array, dtype: str) -> Measures:
    """Return the measures of two arrays of numbers of one shape."""
    known = dtype if dtype in {"float64", "float32", "float16", "bfloat16"} else "float32"
    threshold = threshold_for(known)
    tally = measure(
        MemoryTensor(expected),
        MemoryTensor(actual),
        rtol=threshold.rtol,
        atol=threshold.atol,
        decode=lambda block: np.asarray(block, np.float64),  # a block at a time, not all of it
    )
    return measures_of(tally, tally.mismatched + tally.differing_nonfinite, threshold)


def new_nonfinite(found: Measures) -> bool:
    """Whether there is a NaN or an infinity where the reference has a number, or another one."""
    mine, theirs = found.actual, found.expected
    return (mine.nan, mine.positive_inf, mine.negative_inf) != (
        theirs.nan,
        theirs.positive_inf,
        theirs.negative_inf,
    )


def nonfinite_words(found: Measures) -> str:
    """Say which NaN and infinities there are that should not be."""
    mine, theirs = found.actual, found.expected
    pairs = (
        ("NaN", mine.nan, theirs.nan),
        ("+inf", mine.positive_inf, theirs.positive_inf),
        ("-inf", mine.negative_inf, theirs.negative_inf),
    )
    told = [
        f"{have:,} {name} where {should:,} should be"
        for name, have, should in pairs
        if have != should
    ]
    return "it makes " + ", ".join(told)


__all__ = ["Computer", "Task", "apart"]
