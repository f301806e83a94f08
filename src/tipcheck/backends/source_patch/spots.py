"""Finds each ``jit.save`` in a source text, and what it saves, where, and with which inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import libcst as cst
from libcst import metadata

from tipcheck.errors import UsageError

_SAVES = ("paddle.jit.save", "paddle.jit.api.save", "paddle.fluid.dygraph.jit.save")
_CONVERTS = ("paddle.jit.to_static", "paddle.jit.api.to_static", "paddle.jit.declarative")


@dataclass(frozen=True, slots=True)
class Spot:
    """One statement that saves, and the words of the check that belongs behind it.

    Attributes:
        line: where the statement starts, counted from 1.
        end_line: where it ends.
        end_column: column behind its last character, counted from 0.
        inline: whether it shares its line with what it belongs to (``if x: save(...)``), so that
            what follows it has to stand on the same line.
        layer: the expression that is saved.
        path: where to.
        image_shape: shape without the batch dimension, or full specs, or ``None``.
        taken: names that are read in the same scope, so that they must not get another value.
        own: names that are variables of this scope.
    """

    line: int
    end_line: int
    end_column: int
    inline: bool
    layer: str
    path: str
    image_shape: str
    taken: frozenset[str]
    own: frozenset[str]


@dataclass
class _Conversion:
    """A ``to_static`` call with specs."""

    place: int
    target: str
    spec: cst.BaseExpression
    scope: object


def find_spots(text: str, where: str) -> list[Spot]:
    """Return every save of a source text, from top to bottom.

    Raises:
        UsageError: the text is no Python, or a save stands where nothing can follow it.
    """
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        told = error.message.splitlines()[0]
        raise UsageError(f"is no Python ({told})", where=f"{where}:{error.raw_line}") from None
    wrapper = metadata.MetadataWrapper(module, unsafe_skip_copy=True)
    finder = _Finder(module, where)
    wrapper.visit(finder)
    return finder.spots


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (
        metadata.PositionProvider,
        metadata.QualifiedNameProvider,
        metadata.ScopeProvider,
        metadata.ParentNodeProvider,
    )

    def __init__(self, module: cst.Module, where: str) -> None:
        super().__init__()
        self._module = module
        self._where = where
        self._saves: list[tuple[cst.Call, cst.BaseSmallStatement]] = []
        self._conversions: list[_Conversion] = []
        self._reads: dict[object, set[str]] = {}
        self._statements: list[cst.BaseSmallStatement] = []
        self.spots: list[Spot] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.BaseSmallStatement):
            self._statements.append(node)
        elif isinstance(node, cst.Call):
            self._look(node)
        elif isinstance(node, cst.Name):
            self._read(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.BaseSmallStatement):
            self._statements.pop()
        elif original_node is self._module:  # where nodes stand is known until the visit is over
            self.spots = [self._spot(call, statement) for call, statement in self._saves]

    def _look(self, call: cst.Call) -> None:
        names = self.get_metadata(metadata.QualifiedNameProvider, call.func, set())
        found = {item.name for item in cast("Any", names)}
        if not found:  # from a module that was imported whole: paddle is then what it is called
            found = {self._code(call.func)}
        if found & set(_SAVES) and self._statements:
            self._saves.append((call, self._statements[-1]))
        elif found & set(_CONVERTS):
            spec = _argument(call, 2, "input_spec", by_name_only=True)
            if spec is not None:
                self._conversions.append(
                    _Conversion(
                        place=self._line(call),
                        target=self._target(call),
                        spec=spec,
                        scope=self.get_metadata(metadata.ScopeProvider, call, None),
                    )
                )

    def _read(self, name: cst.Name) -> None:
        parent = self.get_metadata(metadata.ParentNodeProvider, name, None)
        if isinstance(parent, cst.Attribute) and parent.attr is name:
            return
        if isinstance(parent, (cst.AssignTarget, cst.Param)):
            return
        if isinstance(parent, cst.Arg) and parent.keyword is name:
            return
        scope: Any = self.get_metadata(metadata.ScopeProvider, name, None)
        while scope is not None:  # what an inner function reads may be a variable of this one
            self._reads.setdefault(scope, set()).add(name.value)
            scope = scope.parent if scope.parent is not scope else None

    def _target(self, call: cst.Call) -> str:
        """Return what a converted layer is called from then on."""
        parent = self.get_metadata(metadata.ParentNodeProvider, call, None)
        if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
            return self._code(parent.targets[0].target).removesuffix(".forward")
        first = _argument(call, 0, "function")
        return self._code(first).removesuffix(".forward") if first is not None else ""

    def _line(self, node: cst.CSTNode) -> int:
        return cast("Any", self.get_metadata(metadata.PositionProvider, node)).start.line  # type: ignore[no-any-return]

    def _code(self, node: cst.CSTNode) -> str:
        return self._module.code_for_node(node)

    # What comes of it --------------------------------------------------------------------------

    def _spot(self, call: cst.Call, statement: cst.BaseSmallStatement) -> Spot:
        line = self._line(call)
        if isinstance(statement, (cst.Return, cst.Raise)):
            word = "return" if isinstance(statement, cst.Return) else "raise"
            raise UsageError(
                f"this save stands in a {word} statement, behind which nothing runs",
                where=f"{self._where}:{line}",
                hint="write the save on a line of its own",
            )
        layer, path = _argument(call, 0, "layer"), _argument(call, 1, "path")
        if layer is None or path is None:
            raise UsageError(
                "cannot see which layer is saved, and where to",
                where=f"{self._where}:{line}",
                hint="name them with --layer and --path",
            )
        holder = self.get_metadata(metadata.ParentNodeProvider, statement, None)
        position = cast("Any", self.get_metadata(metadata.PositionProvider, cast("Any", holder)))
        inline = isinstance(holder, cst.SimpleStatementSuite)
        scope = self.get_metadata(metadata.ScopeProvider, call, None)
        return Spot(
            line=line,
            end_line=position.end.line,
            end_column=position.end.column,
            inline=inline,
            layer=_one_line(self._code(layer)),
            path=_one_line(self._code(path)),
            image_shape=self._shape(call, self._code(layer), scope),
            taken=frozenset(self._reads.get(scope, set())),
            own=frozenset(one.name for one in cast("Any", scope).assignments),
        )

    def _shape(self, call: cst.Call, layer: str, scope: object) -> str:
        spec = _argument(call, 2, "input_spec")
        if spec is None or self._code(spec) == "None":
            line = self._line(call)
            before = [one for one in self._conversions if one.place <= line and one.scope is scope]
            mine = [one for one in before if one.target == layer]
            if not (mine or before):
                return "None"
            spec = (mine or before)[-1].spec
        shape = _image_shape(spec)
        return _one_line(self._code(spec) if shape is None else shape.write(self._module))


@dataclass(frozen=True)
class _Shape:
    """A shape as an expression: literal extents, or everything behind a ``[None] +``."""

    nodes: Sequence[cst.BaseExpression]
    is_list: bool

    def write(self, module: cst.Module) -> str:
        parts = [module.code_for_node(node) for node in self.nodes]
        return f"[{', '.join(parts)}]" if self.is_list else parts[0]


def _image_shape(spec: cst.BaseExpression) -> _Shape | None:
    """Return the shape without batch of a single float input; None for anything else."""
    if not isinstance(spec, (cst.List, cst.Tuple)) or len(spec.elements) != 1:
        return None
    only = spec.elements[0].value
    if not isinstance(only, cst.Call) or not _is_float(only):
        return None
    shape = _argument(only, 0, "shape")
    if isinstance(shape, (cst.List, cst.Tuple)):
        extents = [element.value for element in shape.elements]
        if extents and _is_open(extents[0]) and not any(map(_is_open, extents[1:])):
            return _Shape(extents[1:], is_list=True)
    elif (
        isinstance(shape, cst.BinaryOperation)
        and isinstance(shape.operator, cst.Add)
        and isinstance(shape.left, cst.List)
        and len(shape.left.elements) == 1
        and _is_open(shape.left.elements[0].value)
    ):
        return _Shape([shape.right], is_list=False)
    return None


def _is_open(extent: cst.BaseExpression) -> bool:
    if isinstance(extent, cst.UnaryOperation):
        return isinstance(extent.operator, cst.Minus)
    return isinstance(extent, cst.Name) and extent.value == "None"


def _is_float(spec: cst.Call) -> bool:
    dtype = _argument(spec, 1, "dtype")
    if dtype is None:
        return True
    code = cst.Module([]).code_for_node(dtype)
    return code.strip("\"'").rpartition(".")[2] == "float32"


def _argument(
    call: cst.Call, place: int, name: str, *, by_name_only: bool = False
) -> cst.BaseExpression | None:
    positional = [arg for arg in call.args if arg.keyword is None]
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
    if by_name_only or place >= len(positional) or any(arg.star for arg in positional):
        return None
    return positional[place].value


def _one_line(code: str) -> str:
    """Return an expression on one line; inside brackets, line ends mean nothing."""
    lines = [_without_comment(line).strip() for line in code.splitlines()]
    text = " ".join(filter(None, lines))
    for bracket in "([{":
        text = text.replace(f"{bracket} ", bracket)
    for bracket in ")]}":
        text = text.replace(f", {bracket}", bracket).replace(f" {bracket}", bracket)
    return text


def _without_comment(line: str) -> str:
    quote = ""
    for place, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "#":
            return line[:place]
    return line


def names_in(code: str) -> Iterator[str]:
    """Yield the names that an expression reads."""
    for node in _all_nodes(cst.parse_expression(code)):
        if isinstance(node, cst.Name):
            yield node.value


def _all_nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from _all_nodes(child)
