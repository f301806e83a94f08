"""The program that one stage really runs, and how it came to be: what alignment is made from.

Every kind of model (PIR, the older ``ProgramDesc``, ONNX, TensorRT's inspector files) is brought
into this one form, in which nothing of a framework is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

ABSENT = -1
"""Stands for an optional operand that is not given."""


@dataclass(frozen=True, slots=True)
class GraphValue:
    """One tensor of a program.

    Attributes:
        id: its key in the graph.
        name: as the program calls it; often empty or not stable.
        dtype: ``float32``, ``bfloat16``, ``int64`` …; empty when not known.
        shape: -1 where a length is not fixed.
        producer: index of the op that makes it; -1 for parameters, constants and inputs.
        leaves: what a constant was made from, in order: names of parameters of the exported model,
            and ``=`` followed by the text of what stands in the program itself (``=[1,2]``). For a
            parameter: its own name. Empty for what depends on an input, or is not known.
    """

    id: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    producer: int
    leaves: tuple[str, ...] = ()

    @property
    def floating(self) -> bool:
        """Whether its elements are numbers with a fraction."""
        return self.dtype.startswith(("float", "bfloat", "complex"))


@dataclass(frozen=True, slots=True)
class GraphOp:
    """One op of a program.

    Attributes:
        index: position among the ops that run; for Paddle the number behind the colon of the
            name that hooks get (``pd_op.conv2d:7``).
        type: such as ``pd_op.conv2d``, ``onednn_op.fused_conv2d``, ``conv2d`` or ``Conv``.
        operands: ids of values, ``ABSENT`` where an optional one is not given.
        results: ids of values.
        attributes: plain JSON values; what a framework keeps for itself is left out.
        layer_path: path of the layer it comes from; empty when not known.
        source: position of the same op in the main block of the exported program, as
            ``load_inference_model`` gives it (parameters and feeds count); -1 when it has none.
    """

    index: int
    type: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    layer_path: str = ""
    source: int = -1


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One optimisation pass, as the log shows it.

    Attributes:
        name: as in the log, which is not always the registered name.
        removed: op types it took out, with how many.
        added: op types it put in, with how many.
    """

    name: str
    removed: dict[str, int] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Whether it changed anything."""
        return bool(self.removed or self.added)


@dataclass(frozen=True, slots=True)
class Graph:
    """One program.

    Attributes:
        model: path of the exported model.
        run_mode: the run mode whose program this is.
        kind: ``pir``, ``pdmodel``, ``onnx``, ``openvino``, ``dygraph`` or ``tensorrt``.
        values: by id.
        ops: in the order in which they run; parameters, constants and inputs are no ops.
        inputs: names of the model's inputs and their values.
        outputs: values of the model's outputs, in the model's order.
        parameters: names of parameters and their values; folded constants carry ``leaves`` instead.
        passes: what was done to the exported program, in order.
    """

    schema: ClassVar[str] = "tipcheck.graph/1"

    model: str
    run_mode: str
    kind: str
    values: tuple[GraphValue, ...]
    ops: tuple[GraphOp, ...]
    inputs: dict[str, int]
    outputs: tuple[int, ...]
    parameters: dict[str, int]
    passes: tuple[PassRecord, ...] = ()

    def value(self, key: int) -> GraphValue:
        """Return one value; its id is its place."""
        return self.values[key]

    def op_of(self, key: int) -> GraphOp | None:
        """Return the op that makes a value; None for parameters, constants and inputs."""
        producer = self.values[key].producer
        return None if producer < 0 else self.ops[producer]
