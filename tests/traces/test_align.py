"""Alignment finds the same mathematical value through every change that optimisation makes."""

from __future__ import annotations

from typing import Any

from tipcheck.backends.graph import ABSENT, Graph, GraphOp, GraphValue, PassRecord
from tipcheck.blame.align import align
from tipcheck.blame.alignment import Alignment, Match, Reason

SHAPE = (-1, 8, 4, 4)


class Program:
    """Builds a graph; values are called by name."""

    def __init__(self, *inputs: str) -> None:
        self._values: list[GraphValue] = []
        self._ops: list[GraphOp] = []
        self.of: dict[str, int] = {"": ABSENT}
        for name in inputs:
            self._value(name, -1, ())
        self._inputs = {name: self.of[name] for name in inputs}

    def _value(
        self, name: str, producer: int, leaves: tuple[str, ...], shape: tuple[int, ...] = SHAPE
    ) -> int:
        key = len(self._values)
        self._values.append(GraphValue(key, name, "float32", shape, producer, leaves))
        self.of[name] = key
        return key

    def op(
        self,
        kind: str,
        operands: str,
        result: str,
        shape: tuple[int, ...] = SHAPE,
        **attributes: Any,
    ) -> Program:
        """Add an op. Operands in capitals are parameters, those with ``=`` constants."""
        keys = []
        for name in operands.split(","):
            if name not in self.of:
                assert name.isupper() or name.startswith("="), name
                self._value(name, -1, tuple(name.split("+")))
            keys.append(self.of[name])
        index = len(self._ops)
        results = tuple(self._value(name, index, (), shape) for name in result.split(","))
        self._ops.append(GraphOp(index, kind, tuple(keys), results, attributes))
        return self

    def graph(self, *outputs: str, passes: tuple[PassRecord, ...] = ()) -> Graph:
        return Graph(
            model="net.json",
            run_mode="cpu_ir",
            kind="pir",
            values=tuple(self._values),
            ops=tuple(self._ops),
            inputs=self._inputs,
            outputs=tuple(self.of[name] for name in outputs),
            parameters={},
            passes=passes,
        )


def partners(baseline: Graph, candidate: Graph) -> dict[str, str]:
    found = align(baseline, candidate).partners
    return {candidate.values[a].name: baseline.values[b].name for a, b in found.items()}


def reasons(alignment: Alignment, graph: Graph, side: str) -> dict[str, Reason]:
    rows = ((getattr(row, side), row) for row in alignment.pairings if not row.match.value)
    return {graph.values[key].name: row.reason for key, row in rows if key is not None}


def plain() -> Program:
    """Conv, norm, relu, conv, norm, add, pool."""
    return (
        Program("x")
        .op("pd_op.conv2d", "x,W1", "c1")
        .op("pd_op.batch_norm_", "c1,S1,B1", "n1,mean1")
        .op("pd_op.relu_", "n1", "r1")
        .op("pd_op.conv2d", "r1,W2", "c2")
        .op("pd_op.batch_norm_", "c2,S2,B2", "n2,mean2")
        .op("pd_op.add_", "n2,r1", "s")
        .op("pd_op.pool2d", "s", "p", (-1, 8, 1, 1))
    )


def fused() -> Program:
    return (
        Program("x")
        .op("onednn_op.fused_conv2d", "x,W1+S1,B1+S1", "a", fuse_activation="relu")
        .op("onednn_op.fused_conv2d", "a,W2+S2,B2+S2,a", "b", fuse_activation="")
        .op("onednn_op.pool2d", "b", "c", (-1, 8, 1, 1))
    )


FUSION = PassRecord("conv_fuse_pass", {"pd_op.conv2d": 2}, {"onednn_op.fused_conv2d": 2})


def test_a_program_equals_itself() -> None:
    graph = plain().graph("p")
    alignment = align(graph, graph)
    assert all(one == other for one, other in alignment.partners.items())
    rows = [row for row in alignment.pairings if row.candidate in alignment.partners]
    assert {row.match for row in rows} == {Match.SAME_OP}


def test_what_a_fused_op_ends_with_is_its_partner() -> None:
    baseline, candidate = plain().graph("p"), fused().graph("c", passes=(FUSION,))
    assert partners(baseline, candidate) == {"a": "r1", "b": "s", "c": "p"}


def test_a_fused_op_says_which_work_it_does_and_on_what() -> None:
    baseline, candidate = plain().graph("p"), fused().graph("c", passes=(FUSION,))
    rows = {row.candidate: row for row in align(baseline, candidate).pairings}
    row = rows[candidate.ops[1].results[0]]
    assert row.match is Match.FUSED
    assert row.covers == (3, 4, 5)
    assert row.inputs == ((candidate.ops[0].results[0], baseline.ops[2].results[0]),)
    assert row.note == "conv2d+batch_norm+add"


def test_what_was_fused_away_says_into_what_and_by_which_pass() -> None:
    baseline, candidate = plain().graph("p"), fused().graph("c", passes=(FUSION,))
    alignment = align(baseline, candidate)
    left = reasons(alignment, baseline, "baseline")
    assert left == {
        "c1": Reason.FUSED_AWAY,
        "n1": Reason.FUSED_AWAY,
        "mean1": Reason.DEAD,
        "c2": Reason.FUSED_AWAY,
        "n2": Reason.FUSED_AWAY,
        "mean2": Reason.DEAD,
    }
    notes = {row.baseline: row.note for row in alignment.pairings if row.candidate is None}
    assert notes[baseline.ops[0].results[0]] == "into onednn_op.fused_conv2d:0 by conv_fuse_pass"


def test_names_do_not_matter_and_branches_are_told_apart_by_parameters() -> None:
    def branches(first: str, second: str) -> Program:
        program = Program("x")
        for name in (first, second):
            program.op("pd_op.conv2d", f"x,W{name.upper()}", f"c{name}")
        return program.op("pd_op.concat", "ca,cb", "out", (-1, 16, 4, 4))

    baseline, candidate = branches("a", "b").graph("out"), branches("b", "a").graph("out")
    assert partners(baseline, candidate) == {"ca": "ca", "cb": "cb", "out": "out"}


def test_slices_of_one_tensor_are_told_apart_by_their_constants() -> None:
    def slices(*order: int) -> Graph:
        program = Program("x")
        for place in order:
            program.op("pd_op.slice", f"x,=[{place}],=[{place + 1}]", f"s{place}", axes=[0])
        program.op("pd_op.matmul", "s0,s1", "m").op("pd_op.matmul", "m,s2", "out")
        return program.graph("out")

    found = partners(slices(0, 1, 2), slices(2, 0, 1))
    assert found == {name: name for name in ("s0", "s1", "s2", "m", "out")}


def test_a_plain_op_does_not_take_in_what_its_taker_was_fused_with() -> None:
    baseline = (
        Program("x")
        .op("pd_op.slice", "x,=[0]", "q")
        .op("pd_op.scale_", "q,=0.1", "scaled", bias=0)
        .op("pd_op.matmul", "scaled,W1", "out")
    )
    candidate = (
        Program("x")
        .op("onednn_op.slice", "x,=[0]", "q")
        .op("onednn_op.fused_matmul", "q,W1", "out", fuse_activation="")
    )
    assert partners(baseline.graph("out"), candidate.graph("out")) == {"q": "q", "out": "out"}


def test_copies_casts_and_layouts_keep_the_partner() -> None:
    baseline = Program("x").op("pd_op.relu", "x", "r").op("pd_op.matmul", "r,W1", "out")
    candidate = (
        Program("x")
        .op("onednn_op.quantize", "x", "xq")
        .op("onednn_op.relu", "xq", "r")
        .op("pd_op.onednn_to_paddle_layout", "r", "moved")
        .op("pd_op.matmul", "moved,W1", "out")
    )
    ours, theirs = baseline.graph("out"), candidate.graph("out")
    assert partners(ours, theirs) == {"xq": "x", "r": "r", "moved": "r", "out": "out"}
    rows = {row.candidate: row.match for row in align(ours, theirs).pairings}
    assert rows[theirs.ops[2].results[0]] is Match.MOVED


def test_dropout_that_does_nothing_does_not_mislead() -> None:
    def program(*, kept: bool) -> Graph:
        made = Program("x").op("pd_op.matmul", "x,W1", "m")
        if kept:
            made.op("pd_op.dropout", "m", "d", mode="upscale_in_train", is_test=True)
        return made.op("pd_op.matmul", f"{'d' if kept else 'm'},W2", "out").graph("out")

    assert partners(program(kept=True), program(kept=False)) == {"m": "m", "out": "out"}


def test_one_op_that_became_several() -> None:
    baseline = Program("x").op("pd_op.layer_norm", "x,S1,B1", "n").op("pd_op.matmul", "n,W1", "out")
    candidate = (
        Program("x")
        .op("ReduceMean", "x", "mean", (-1, 8, 4, 1))
        .op("Sub", "x,mean", "centred")
        .op("Mul", "centred,S1", "scaled")
        .op("Add", "scaled,B1", "shifted")
        .op("MatMul", "shifted,W1", "out")
    )
    ours, theirs = baseline.graph("out"), candidate.graph("out")
    assert partners(ours, theirs) == {"shifted": "n", "out": "out"}
    alignment = align(ours, theirs)
    assert set(reasons(alignment, theirs, "candidate").values()) == {Reason.INTERNAL}


def test_a_normalisation_behind_a_bias_is_in_weight_and_bias_which_keep_their_names() -> None:
    baseline = (
        Program("x")
        .op("conv2d_transpose", "x,W1", "c")
        .op("elementwise_add", "c,B1", "biased")
        .op("batch_norm", "biased,S1,B2", "n")
        .op("relu", "n", "r")
    )
    for last in ("relu", "silu"):  # whatever else is different
        candidate = (
            Program("x")
            .op("conv2d_transpose", "x,W1", "c")
            .op("elementwise_add", "c,B1", "shifted")
            .op(last, "shifted", "r")
        )
        found = partners(baseline.graph("r"), candidate.graph("r"))
        assert found["shifted"] == "n"
        assert "c" not in found


def test_half_of_a_normalisation_is_no_tensor_of_the_baseline() -> None:
    """The older format scales the weights and adds the rest later, under names of its own."""
    baseline = (
        Program("x").op("conv2d", "x,W1", "c").op("batch_norm", "c,S1,B1", "n").op("relu", "n", "r")
    )
    candidate = Program("x").op("conv2d", "x,W1", "half")
    key = candidate._value("made up", -1, ())
    candidate.op("elementwise_add", "half,made up", "n").op("relu", "n", "r")
    assert key == candidate.of["made up"]
    assert partners(baseline.graph("r"), candidate.graph("r")) == {"n": "n", "r": "r"}


def test_a_shape_that_a_pass_left_behind_does_not_hide_the_partner() -> None:
    baseline = (
        Program("x")
        .op("pd_op.squeeze", "x", "flat", (-1, 8, 4))
        .op("pd_op.transpose", "flat", "turned", (-1, 4, 8))
        .op("pd_op.matmul", "turned,W1", "out", (-1, 4, 2))
    )
    candidate = (
        Program("x")
        .op("onednn_op.fused_transpose", "x", "turned", (-1, 4, 1, 8))
        .op("pd_op.matmul", "turned,W1", "out", (-1, 4, 2))
    )
    record = PassRecord("squeeze_transpose_pass", {}, {"onednn_op.fused_transpose": 1})
    found = partners(baseline.graph("out"), candidate.graph("out", passes=(record,)))
    assert found == {"turned": "turned", "out": "out"}


def test_what_fits_nothing_is_unknown_and_goes_no_further_than_it_must() -> None:
    baseline = Program("x").op("pd_op.sin", "x", "a").op("pd_op.matmul", "a,W1", "b").graph("b")
    candidate = (
        Program("x")
        .op("pd_op.tan", "x", "odd", (-1, 3))
        .op("pd_op.matmul", "x,W9", "b", (-1, 2))
        .graph("b", "odd")
    )
    alignment = align(baseline, candidate)
    assert alignment.partners == {}
    assert reasons(alignment, candidate, "candidate") == {
        "odd": Reason.UNKNOWN,
        "b": Reason.UNKNOWN,
    }
