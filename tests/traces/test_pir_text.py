"""What Paddle prints of its programs is read as it is meant."""

# ruff: noqa: E501 - lines as Paddle prints them

from __future__ import annotations

from tipcheck.backends.graphs.pir import graph_of_prints
from tipcheck.backends.graphs.pir_text import read_programs

BEFORE = """noise that Paddle prints too
===---===
        IRPrinting on builtin.module before constant_folding_pass pass
===---===
{
    (%0) = "builtin.parameter" () {parameter_name:"conv.w",persistable:[true]} : () -> tensor<8x3x3x3xf32>
    (%1) = "builtin.parameter" () {parameter_name:"bn.w",persistable:[true]} : () -> tensor<8xf32>
    (%2) = "pd_op.data" () {dtype:float32,name:"x, (odd)",place:Place(undefined:0),shape:[-1,3,8,8]} : () -> tensor<-1x3x8x8xf32>
    (%3) = "pd_op.full_int_array" () {place:Place(cpu),value:[1,2]} : () -> tensor<2xi64>
    (%4) = "pd_op.multiply" (%0, %1) {} : (tensor<8x3x3x3xf32>, tensor<8xf32>) -> tensor<8x3x3x3xf32>
    (%5) = "onednn_op.fused_conv2d" (%2, %4, <<NULL VALUE>>) {fuse_activation:"relu",strides:[2,2],struct_name:"/Net/Conv2D/"} : (tensor<-1x3x8x8xf32>, tensor<8x3x3x3xf32>, <<NULL TYPE>>) -> tensor<-1x8x3x3xf32>
    (%6) = "pd_op.if" (%5) {} : (tensor<-1x8x3x3xf32>) -> tensor<b> {
        (%20) = "pd_op.inside" (%5) {} : (tensor<1xf32>) -> tensor<1xf32>
    }
    (%7) = "pd_op.unbind" (%5) {axis:0} : (tensor<-1x8x3x3xf32>) -> vec[tensor<8x3x3xf32>,tensor<8x3x3xf32>]
    (%8, %9) = "builtin.split" (%7) {} : (vec[tensor<8x3x3xf32>,tensor<8x3x3xf32>]) -> tensor<8x3x3xf32>, tensor<8x3x3xf32>
    (%10) = "builtin.combine" (%9, %8) {} : (tensor<8x3x3xf32>, tensor<8x3x3xf32>) -> vec[tensor<8x3x3xf32>,tensor<8x3x3xf32>]
    (%11) = "pd_op.concat" (%10, %3) {} : (vec[tensor<8x3x3xf32>,tensor<8x3x3xf32>], tensor<2xi64>) -> tensor<16x3x3xf32>
    () = "builtin.shadow_output" (%11) {output_name:"fetch_name_0"} : (tensor<16x3x3xf32>) ->
}
"""
AFTER = (
    BEFORE.replace("before constant_folding_pass", "after constant_folding_pass")
    .replace(
        '"pd_op.multiply" (%0, %1) {} : (tensor<8x3x3x3xf32>, tensor<8xf32>)',
        '"builtin.parameter" () {parameter_name:"constant_folding@_7"} : ()',
    )
    .replace(
        '"pd_op.full_int_array" () {place:Place(cpu),value:[1,2]}',
        '"builtin.constant" () {value:"constant_folding@_8"}',
    )
)


def test_programs_come_one_by_one_without_what_stands_between() -> None:
    programs = list(read_programs((BEFORE + AFTER).splitlines(keepends=True)))
    assert [(one.when, one.pass_name) for one in programs] == [
        ("before", "constant_folding_pass"),
        ("after", "constant_folding_pass"),
    ]
    assert programs[0].types()["pd_op.multiply"] == 1


def test_an_op_is_read_with_its_attributes_and_types() -> None:
    (program,) = read_programs(BEFORE.splitlines(keepends=True))
    ops = {op.name: op for op in program.ops()}
    conv = ops["onednn_op.fused_conv2d"]
    assert conv.operands == (2, 4, -1)
    assert conv.attributes["strides"] == [2, 2]
    assert conv.attributes["fuse_activation"] == "relu"
    assert conv.types[0].shape == (-1, 8, 3, 3)
    assert ops["pd_op.data"].attributes["name"] == "x, (odd)"
    assert ops["pd_op.if"].types[0].dtype == "bool"
    assert "pd_op.inside" not in ops


def test_a_graph_says_what_folded_constants_were_made_from() -> None:
    made = graph_of_prints((BEFORE + AFTER).splitlines(keepends=True), "net.json", "onednn_fp32")
    assert made is not None
    graph, numbers = made
    conv = next(op for op in graph.ops if op.type == "onednn_op.fused_conv2d")
    assert graph.values[conv.operands[1]].leaves == ("conv.w", "bn.w")
    concat = next(op for op in graph.ops if op.type == "pd_op.concat")
    assert graph.values[concat.operands[2]].leaves == ("=[1,2]",)
    assert list(graph.inputs) == ["x, (odd)"]
    assert graph.outputs == (concat.results[0],)
    (record,) = graph.passes
    assert record.removed == {"pd_op.multiply": 1, "pd_op.full_int_array": 1}
    assert numbers[5] == conv.results[0]


def test_a_vector_is_its_elements() -> None:
    made = graph_of_prints(BEFORE.splitlines(keepends=True), "net.json", "onednn_fp32")
    assert made is not None
    graph, numbers = made
    unbind = next(op for op in graph.ops if op.type == "pd_op.unbind")
    concat = next(op for op in graph.ops if op.type == "pd_op.concat")
    assert concat.operands[:2] == unbind.results[::-1]
    assert "builtin.split" not in {op.type for op in graph.ops}
    # Elements are numbered behind their vector, as in the names that variables get.
    assert (numbers[8], numbers[9]) == unbind.results


def test_nothing_printed_is_no_graph() -> None:
    assert graph_of_prints(["some other text\n"], "net.json", "cpu_ir") is None
