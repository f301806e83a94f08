"""The text of an exported PIR program, taken apart: what is needed to run a piece of it elsewhere.

``paddle.jit.save`` writes a program as JSON. Working on that text has two advantages over cloning
ops: every value keeps its declared type, and the types can be changed, all at once, to float64,
which is how a reference of higher precision is made from a program that has none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

Json = dict[str, Any]

_PARAMETER, _FETCH = "p", "1.fetch"
_INPUTS = ("1.data", "1.feed")
_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf", "3": "custom_op"}
_SPLIT = "0.split"
_TAKEN_APART = (_SPLIT, "0.slice")
_NULL = 0
"""The id of an optional operand that is not given."""
_TENSOR = "0.t_dtensor"
_WIDER = {"0.t_f32": "0.t_f64", "0.t_f16": "0.t_f64", "0.t_bf16": "0.t_f64"}
_WIDER_NAMES = {"float32": "float64", "float16": "float64", "bfloat16": "float64"}
_DTYPES = {
    "0.t_f64": "float64",
    "0.t_f32": "float32",
    "0.t_f16": "float16",
    "0.t_bf16": "bfloat16",
    "0.t_i64": "int64",
    "0.t_i32": "int32",
    "0.t_i16": "int16",
    "0.t_i8": "int8",
    "0.t_ui8": "uint8",
    "0.t_bool": "bool",
}


class UnknownProgramError(Exception):
    """The text is no program of a form that is known."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a program that can be run alone.

    Attributes:
        text: the program, as Paddle reads it.
        parameters: names of the parameters it uses.
        inputs: ids of the values it has to be fed with; ``feed_name`` says under which name.
    """

    text: str
    parameters: tuple[str, ...]
    inputs: tuple[int, ...]


def feed_name(value: int) -> str:
    """Return the name under which a piece is fed with a value."""
    return f"v{value}"


class ProgramText:
    """One exported program.

    ``ops`` holds what computes something, in order; parameters, inputs and fetches are no ops.
    """

    def __init__(self, text: str) -> None:
        try:
            self._whole: Json = json.loads(text)
            block = self._whole["program"]["regions"][0]["blocks"][0]["ops"]
            self._base = self._whole["base_code"]
            self._parameters = {_results(op)[0]["%"]: op for op in block if op["#"] == _PARAMETER}
            inputs = [op for op in block if op["#"] in _INPUTS]
            self.inputs = {str(_attribute(op, "name")): _results(op)[0]["%"] for op in inputs}
            fetches = sorted(
                (op for op in block if op["#"] == _FETCH), key=lambda op: int(_attribute(op, "col"))
            )
            self.outputs = [op["I"][0]["%"] for op in fetches]
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise UnknownProgramError(f"{type(error).__name__}: {error}") from None
        self._block = block
        outside = (_PARAMETER, _FETCH, *_INPUTS)
        self.ops: list[Json] = [op for op in block if op["#"] not in outside]
        self._results = {
            result["%"]: result for op in (*block,) if op["#"] != _FETCH for result in _results(op)
        }
        self._makers = {
            result["%"]: at for at, op in enumerate(self.ops) for result in _results(op)
        }

        self._users: dict[int, list[int]] = {}
        for place, op in enumerate(block):
            if op["#"] != _PARAMETER:
                for value in set(_operands(op)):
                    self._users.setdefault(value, []).append(place)

    @property
    def parameters(self) -> dict[str, tuple[int, bool]]:
        """Value of every parameter by name, and whether the file of parameters holds it."""
        return {op["A"][3]: (value, _saved(op)) for value, op in self._parameters.items()}

    def all_results(self) -> list[list[int]]:
        """Return the values made by everything in the text, parameters and inputs included."""
        return [[result["%"] for result in _results(op)] for op in self._block]

    def type_at(self, place: int) -> str:
        """Return the type of what stands at a place of the whole text; empty beyond its end."""
        return op_type(self._block[place]) if place < len(self._block) else ""

    def places_using(self, value: int | None) -> list[int]:
        """Return the places of the whole text that take a value."""
        return [] if value is None else self._users.get(value, [])

    def flat_results(self, place: int) -> list[int | None]:
        """Return the tensors made at a place, vectors one by one; None for unused ones."""
        flat: list[int | None] = []
        for result in _results(self._block[place]):
            if result["TT"]["#"] == _TENSOR:
                flat.append(result["%"])
            else:
                flat += self._elements(result["%"], len(result["TT"].get("D", ())))
        return flat

    def _elements(self, vector: int, length: int) -> list[int | None]:
        """Return the tensors that a vector is taken apart into."""
        found: list[int | None] = [None] * length
        for op in self.ops:
            if op["#"] not in _TAKEN_APART or op["I"][0]["%"] != vector:
                continue
            results = [result["%"] for result in _results(op)]
            if op["#"] == _SPLIT:
                return [*results]
            found[int(_attribute(op, "index"))] = results[0]
        return found

    def type_of(self, at: int) -> str:
        """Return the type of an op, such as ``pd_op.conv2d``."""
        return op_type(self.ops[at])

    def results_of(self, at: int) -> list[int]:
        """Return the values an op makes."""
        return [result["%"] for result in _results(self.ops[at])]

    def operands_of(self, at: int) -> list[int]:
        """Return the values an op takes, those used in its inner blocks included."""
        return list(_operands(self.ops[at]))

    def attributes_of(self, at: int) -> dict[str, Any]:
        """Return the attributes of an op whose values are plain."""
        return {item["N"]: item["AT"].get("D") for item in self.ops[at].get("A", ())}

    def parameter_of(self, value: int) -> str:
        """Return the name of the parameter that a value is; empty where it is none."""
        op = self._parameters.get(value)
        return str(op["A"][3]) if op else ""

    def maker_of(self, value: int) -> int | None:
        """Return the op that makes a value; None for parameters and inputs."""
        return self._makers.get(value)

    def dtype_of(self, value: int) -> str:
        """Return the declared element type; empty for what is no single tensor."""
        kind = self._results[value]["TT"]
        return _DTYPES.get(kind["D"][0]["#"], "") if kind["#"] == _TENSOR else ""

    def shape_of(self, value: int) -> list[int]:
        """Return the declared shape, -1 where a length is open; empty for what is no tensor."""
        kind = self._results[value]["TT"]
        return list(kind["D"][1]) if kind["#"] == _TENSOR else []

    def slice_back(self, targets: Iterable[int], given: Collection[int]) -> list[int]:
        """Return the ops that compute some values from given ones, in order."""
        needed: set[int] = set()
        pending = list(targets)
        while pending:
            at = self._makers.get(pending.pop())
            if at is None or at in needed:
                continue
            needed.add(at)
            pending += [value for value in self.operands_of(at) if value not in given]
        return sorted(needed)

    def piece(
        self,
        targets: Collection[int],
        given: Collection[int],
        *,
        double: bool,
    ) -> Piece:
        """Return the program that computes some values from given ones.

        Args:
            targets: the values to compute.
            given: the values to feed; those that are not needed are left out.
            double: compute in float64 whatever the model computes in.
        """
        chosen = self.slice_back(targets, given)
        made = {value for at in chosen for value in self.results_of(at)}
        used = {value for at in chosen for value in self.operands_of(at)} - made
        parameters = [self._parameters[value] for value in used if value in self._parameters]
        fed = sorted(used.difference(self._parameters))
        body = [
            *parameters,
            *(self._input(value, feed_name(value)) for value in fed),
            *(self.ops[at] for at in chosen),
            *self._fetches(targets),
        ]
        block = {"#": "block_0", "args": [], "ops": body}
        region = {"#": "region_0", "blocks": [block]}
        whole: Json = {"base_code": self._base, "program": {"regions": [region]}}
        text = json.dumps(_widen(whole) if double else whole)
        return Piece(text, tuple(op["A"][3] for op in parameters), tuple(fed))

    def _input(self, value: int, name: str) -> Json:
        kind = self._results[value]["TT"]
        dtype = self.dtype_of(value)
        if not dtype:
            raise UnknownProgramError(f"value {value} is no single tensor")
        return {
            "#": "1.data",
            "A": [
                _named("name", "0.a_str", name),
                _named("shape", "1.a_intarray", kind["D"][1]),
                _named("dtype", "1.a_dtype", dtype),
                _named("place", "1.a_place", [0, 0, ""]),
            ],
            "I": [],
            "O": [{"%": value, "TT": kind}],
            "OA": [_flags("stop_gradient", on=False)],
        }

    def _fetches(self, targets: Collection[int]) -> Iterator[Json]:
        free = max(self._results, default=0) + 1
        for column, value in enumerate(targets):
            yield {
                "#": _FETCH,
                "A": [
                    _named("name", "0.a_str", f"fetch_{column}"),
                    _named("col", "0.a_i32", column),
                ],
                "I": [{"%": value}],
                "O": [{"%": free + column, "TT": self._results[value]["TT"]}],
                "OA": [_flags("persistable", on=True)],
            }


def op_type(op: Mapping[str, Any]) -> str:
    """Return the type of an op as Paddle prints it."""
    dialect, _, name = str(op["#"]).partition(".")
    return f"{_DIALECTS.get(dialect, dialect)}.{name}"


def _results(op: Mapping[str, Any]) -> list[Json]:
    made = op.get("O", [])
    return [made] if isinstance(made, dict) else made


def _operands(op: Mapping[str, Any]) -> Iterator[int]:
    inner_results: set[int] = set()
    for region in op.get("regions", ()):
        for block in region["blocks"]:
            inner_results.update(item["%"] for item in block.get("args", ()))
            for inner in block["ops"]:
                yield from (value for value in _operands(inner) if value not in inner_results)
                inner_results.update(item["%"] for item in _results(inner))
    yield from (item["%"] for item in op.get("I", ()) if item["%"] != _NULL)


def _attribute(op: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - any JSON value
    return next(item["AT"]["D"] for item in op["A"] if item["N"] == name)


def _saved(op: Mapping[str, Any]) -> bool:
    """Whether a parameter is persistable, which is what the file of parameters holds."""
    flags = op.get("OA", ())
    return bool(flags[0]) if flags and isinstance(flags[0], (int, bool)) else True


def _named(name: str, kind: str, data: object) -> Json:
    return {"AT": {"#": kind, "D": data}, "N": name}


def _flags(name: str, *, on: bool) -> Json:
    return _named(name, "0.a_array", [{"#": "0.a_bool", "D": on}])


def _widen(node: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return the same program with every floating type turned into float64."""
    if isinstance(node, list):
        return [_widen(item) for item in node]
    if not isinstance(node, dict):
        return node
    kind = node.get("#")
    if kind in _WIDER:
        return {**node, "#": _WIDER[kind]}
    if kind == "1.a_dtype":
        return {**node, "D": _WIDER_NAMES.get(node["D"], node["D"])}
    return {key: _widen(item) for key, item in node.items()}
