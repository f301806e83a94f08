"""What an exported program says of itself: its inputs, its ops, and what they accept.

Both export formats are read here without Paddle: the newer one is JSON, the older one protobuf. So
a model can be understood before any process has to load it, and also where Paddle is missing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tipcheck.backends.exports import protobuf
from tipcheck.backends.subject import InputSpec
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_PIR_TYPES = {
    "t_bool": "bool",
    "t_bf16": "bfloat16",
    "t_f16": "float16",
    "t_f32": "float32",
    "t_f64": "float64",
    "t_i8": "int8",
    "t_ui8": "uint8",
    "t_i16": "int16",
    "t_i32": "int32",
    "t_i64": "int64",
    "t_index": "int64",
    "t_c64": "complex64",
    "t_c128": "complex128",
}
PROTO_TYPES = {
    0: "bool",
    1: "int16",
    2: "int32",
    3: "int64",
    4: "float16",
    5: "float32",
    6: "float64",
    20: "uint8",
    21: "int8",
    22: "bfloat16",
    23: "complex64",
    24: "complex128",
}
_LOOKUPS = frozenset({"embedding", "lookup_table_v2", "lookup_table", "c_embedding"})
_CARRIERS = frozenset(
    {"cast", "reshape", "reshape2", "unsqueeze", "unsqueeze2", "squeeze", "squeeze2", "flatten"}
    | {"flatten_contiguous_range", "transpose", "transpose2", "assign", "clip", "slice", "scale"}
    | {"strided_slice", "expand", "expand_v2"}
)
"""Ops whose output holds the integers of their first input, so that a limit passes through."""
_RANDOM = frozenset(
    {"uniform", "gaussian", "gaussian_random", "uniform_random", "randint", "randperm"}
    | {"bernoulli", "multinomial", "truncated_gaussian_random", "poisson"}
)


_UNSAVED = "__non_persistable"
"""How the names of parameters end that are not in the file."""


@dataclass(frozen=True, slots=True)
class Op:
    """One op: its type without dialect, what it reads, what it makes, and its attributes."""

    kind: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Program:
    """An exported program.

    Attributes:
        form: ``json`` or ``pdmodel``.
        inputs: in the order of the program.
        outputs: dtype of each output, in order.
        kinds: how often each op type comes, also within branches and loops.
        quantised: whether it holds quantisation ops.
        random: op types whose answers are random by design.
        training: op types that behave as in training, such as dropout that drops.
        parameters: how many tensors its parameter file has to hold; 0 where that is not known.
    """

    form: str
    inputs: tuple[InputSpec, ...]
    outputs: tuple[str, ...]
    kinds: Mapping[str, int]
    quantised: bool
    random: tuple[str, ...]
    training: tuple[str, ...]
    parameters: int = 0


def read_program(model: Path) -> Program:
    """Read an exported model.

    Raises:
        UsageError: it is neither a ``.json`` nor a ``.pdmodel`` program of Paddle, or damaged.
    """
    try:
        data = model.read_bytes()
    except OSError as error:
        hint = "name an exported .json or .pdmodel file"
        raise UsageError(
            f"cannot be read ({error.strerror})", where=str(model), hint=hint
        ) from None
    try:
        if model.suffix == ".json":
            return _read_json(data)
        if model.suffix == ".pdmodel":
            return _read_protobuf(data)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())[:120]
        raise UsageError(
            f"is no program that paddle.jit.save wrote ({told})",
            where=str(model),
            hint="export the model again",
        ) from None
    raise UsageError(
        "is no exported model", where=str(model), hint="name the .json or .pdmodel file"
    )


def as_exported(inputs: Sequence[InputSpec], exported: Sequence[InputSpec]) -> list[InputSpec]:
    """Return a layer's inputs as its export describes them.

    An InputSpec without a name is called by the argument's name in the export; they then go by
    their order, which an export keeps.
    """
    by_name = {item.name: item for item in exported}
    if len(inputs) == len(exported) and any(item.name not in by_name for item in inputs):
        return list(exported)
    return [by_name.get(item.name, item) for item in inputs]


def _program(
    form: str, inputs: list[InputSpec], outputs: list[str], ops: list[Op], shapes: Mapping[str, Any]
) -> Program:
    kinds = Counter(op.kind for op in ops)
    limits = _limits(ops, shapes)
    known = [InputSpec(spec.name, spec.shape, spec.dtype, limits.get(spec.name)) for spec in inputs]
    random = [kind for kind in kinds if kind in _RANDOM]
    return Program(
        form=form,
        inputs=tuple(known),
        outputs=tuple(outputs),
        kinds=dict(kinds),
        quantised=any("quantize" in kind for kind in kinds),
        random=tuple(sorted(random)),
        training=tuple(sorted({op.kind for op in ops if _trains(op)})),
    )


def _trains(op: Op) -> bool:
    if op.attributes.get("is_test") is not False:
        return False
    if op.kind == "dropout":
        return op.attributes.get("p", op.attributes.get("dropout_prob")) != 0.0
    return op.kind in ("batch_norm", "batch_norm_", "sync_batch_norm", "sync_batch_norm_")


def _limits(ops: list[Op], shapes: Mapping[str, Any]) -> dict[str, int]:
    """Return, by input, the rows of the smallest table that its integers choose from."""
    made_by = {name: op for op in ops for name in op.makes}
    found: dict[str, int] = {}
    for op in ops:
        if op.kind not in _LOOKUPS:
            continue
        ids = op.attributes.get("ids", op.reads[0] if op.reads else "")
        table = op.attributes.get("table", op.reads[1] if len(op.reads) > 1 else "")
        rows = shapes.get(str(table), ())
        name = str(ids)
        for _ in range(len(ops)):
            maker = made_by.get(name)
            if maker is None or maker.kind not in _CARRIERS or not maker.reads:
                break
            name = maker.reads[0]
        maker = made_by.get(name)
        if maker is not None and maker.kind == "data":
            name = str(maker.attributes.get("name", name))
        if rows and rows[0] > 0:
            found[name] = min(found.get(name, rows[0]), rows[0])
    return found


# The newer format ---------------------------------------------------------------------------------


def _read_json(data: bytes) -> Program:
    raw = json.loads(data)
    if raw["base_code"]["magic"] != "pir":
        raise ValueError("it is JSON of something else")
    inputs: list[InputSpec] = []
    ops: list[Op] = []
    shapes: dict[str, list[int]] = {}
    outputs: list[str] = []
    for raw_op in _ops_of(raw["program"]):
        kind = raw_op["#"].partition(".")[2] or raw_op["#"]
        makes = raw_op.get("O", [])
        makes = makes if isinstance(makes, list) else [makes]
        for value in makes:
            kept = _dense(value.get("TT"))
            if kept:
                shapes[str(value["%"])] = kept[1]
        listed = raw_op.get("A", [])
        attributes = {
            item["N"]: item["AT"].get("D")
            for item in (listed if isinstance(listed, list) else [])
            if isinstance(item, dict) and "N" in item
        }
        if kind == "p":
            attributes["name"] = _UNSAVED if str(listed[-1]).endswith(_UNSAVED) else ""
        reads = tuple(str(item["%"]) for item in raw_op.get("I", []))
        ops.append(Op(kind, reads, tuple(str(value["%"]) for value in makes), attributes))
        if kind == "data":
            dtype, shape = _dense(makes[0]["TT"]) or ("float32", [])
            inputs.append(InputSpec(str(attributes["name"]), tuple(shape), dtype))
        elif kind == "fetch":
            outputs.append((_dense(makes[0]["TT"]) or ("float32", []))[0])
    real = [op for op in ops if op.kind not in ("p", "data", "fetch")]
    program = _program("json", inputs, outputs, ops, shapes)
    return Program(
        program.form,
        program.inputs,
        program.outputs,
        dict(Counter(op.kind for op in real)),
        program.quantised,
        program.random,
        program.training,
        sum(op.kind == "p" and op.attributes["name"] != _UNSAVED for op in ops),
    )


def _ops_of(region_owner: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for region in region_owner.get("regions", []):
        for block in region["blocks"]:
            for op in block["ops"]:
                yield op
                yield from _ops_of(op)


def _dense(kind: Any) -> tuple[str, list[int]] | None:  # noqa: ANN401 - any JSON value
    """Return dtype and shape of a type; None for what is no tensor."""
    if not isinstance(kind, dict) or not str(kind.get("#", "")).endswith("t_dtensor"):
        return None
    element, shape, *_ = kind["D"]
    return _PIR_TYPES.get(element["#"].partition(".")[2], "float32"), shape


# The older format ---------------------------------------------------------------------------------

_BLOCKS = 1
_VARS, _OPS = 3, 4
_NAME, _TYPE = 1, 2
_TENSOR_OF_TYPE, _TENSOR = 3, 1
_DTYPE, _DIMS = 1, 2
_OP_READS, _OP_MAKES, _OP_KIND, _OP_ATTRIBUTES = 1, 2, 3, 4


def _read_protobuf(data: bytes) -> Program:
    inputs: list[InputSpec] = []
    ops: list[Op] = []
    shapes: dict[str, list[int]] = {}
    dtypes: dict[str, str] = {}
    outputs: list[str] = []
    blocks = protobuf.children(data, _BLOCKS)
    if not blocks:
        raise ValueError("it has no blocks")
    for block in blocks:
        for name, tensor in _proto_tensors(block):
            shapes[name] = protobuf.integers(tensor, _DIMS)
            dtypes[name] = PROTO_TYPES[protobuf.integers(tensor, _DTYPE)[0]]
        for raw in protobuf.children(block, _OPS):
            op = _proto_op(raw)
            ops.append(op)
            if op.kind == "feed":
                name = op.makes[0]
                inputs.append(InputSpec(name, tuple(shapes[name]), dtypes[name]))
            if op.kind == "fetch":
                outputs.append(dtypes.get(op.reads[0], "float32"))
    if not ops:
        raise ValueError("it has no ops")
    real = [op for op in ops if op.kind not in ("feed", "fetch")]
    inputs.reverse()  # feed ops stand in reverse order
    return _program("pdmodel", inputs, outputs, real, shapes)


def _proto_tensors(block: bytes) -> Iterator[tuple[str, bytes]]:
    for var in protobuf.children(block, _VARS):
        for kind in protobuf.children(var, _TYPE):
            for holder in protobuf.children(kind, _TENSOR_OF_TYPE):
                for tensor in protobuf.children(holder, _TENSOR):
                    yield protobuf.text(var, _NAME), tensor


def _proto_op(raw: bytes) -> Op:
    reads, makes = ({}, {})  # type: tuple[dict[str, list[str]], dict[str, list[str]]]
    for number, slots in ((_OP_READS, reads), (_OP_MAKES, makes)):
        for slot in protobuf.children(raw, number):
            slots[protobuf.text(slot, 1)] = [
                name.decode("utf-8", "replace") for name in protobuf.children(slot, 2)
            ]
    attributes: dict[str, object] = {}
    for item in protobuf.children(raw, _OP_ATTRIBUTES):
        flag = protobuf.integers(item, 10)
        if flag:
            attributes[protobuf.text(item, 1)] = bool(flag[0])
    kind = protobuf.text(raw, _OP_KIND)
    if kind in _LOOKUPS:
        attributes["ids"] = (reads.get("Ids") or [""])[0]
        attributes["table"] = (reads.get("W") or [""])[0]
    first = [name for names in reads.values() for name in names]
    if kind in _CARRIERS:
        first = reads.get("X") or reads.get("Input") or first
    return Op(kind, tuple(first), tuple(n for names in makes.values() for n in names), attributes)
