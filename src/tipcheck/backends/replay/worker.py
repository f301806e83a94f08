"""The worker that computes a piece of a model alone, in float64, from values it is handed.

What an op should have made of its inputs is not what the baseline made of other inputs. The piece
is taken out of the exported program, its types turned into float64, and run on the static executor
with no optimisation whatever; where a kernel has no float64, the piece runs as it was exported,
which the answer says.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.exports.parameters import forget, read_parameters
from tipcheck.backends.exports.program_text import (
    Piece,
    ProgramText,
    UnknownProgramError,
    feed_name,
)
from tipcheck.backends.graph import Graph
from tipcheck.backends.graphs.orientation import orientations
from tipcheck.backends.graphs.program_map import map_by_name, map_by_place, twins
from tipcheck.backends.isolation import answer_request
from tipcheck.backends.replay import eight_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[Any]

_FLOAT_KINDS = "f"
_FLOATS = ("float64", "float32", "float16", "bfloat16")


def work(request: dict[str, Any], answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer orders, one JSON object a line, until there are no more.

    The request is ``{"model", "params", "graph", "orders"}``: files, the last a pipe. An order is
    ``{"key", "target", "given": {VALUE: FILE}, "double", "rounded", "out"}``.
    """
    import paddle

    paddle.enable_static()
    with tempfile.TemporaryDirectory() as folder, Path(request["orders"]).open("rb") as orders:
        try:
            player = Player(request, Path(folder))
        except (UnknownProgramError, RuntimeError, OSError, ValueError) as error:
            answer({"refused": _first_line(error)})
            return
        answer({"known": sorted(player.values)})
        gc.collect()
        gc.freeze()  # what is there now stays; collecting the rest costs little
        for line in orders:
            order = json.loads(line)
            if "end" in order:
                return
            answer(player.answer(order))


class Player:
    """One exported model, ready to compute pieces of itself."""

    def __init__(self, request: Mapping[str, Any], folder: Path) -> None:
        import msgspec

        self._folder = folder
        self._axes: dict[int, list[Sequence[int]]] = {}
        graph = msgspec.json.decode(Path(request["graph"]).read_bytes(), type=Graph)
        model = Path(request["model"])
        if model.suffix == ".pdmodel":
            text, names = _translate(model, folder)
            self._program = ProgramText(text)
            self.values = map_by_name(graph, self._program, _ids(self._program, names))
        else:
            self._program = ProgramText(model.read_text(encoding="utf-8"))
            self.values = map_by_place(graph, self._program)
        self._oriented = orientations(graph)
        self._twins = twins(self._program)
        saved = [name for name, (_, there) in self._program.parameters.items() if there]
        self._parameters = read_parameters(Path(request["params"]), saved)

    def answer(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Compute one value and write it to a file; say how, or why not."""
        import numpy as np

        target = self.values.get(order["target"])
        if target is None:
            return {"key": order["key"], "error": "it is not found in the exported program"}
        given = {
            self.values[int(value)]: Path(file)
            for value, file in order["given"].items()
            if int(value) in self.values
        }
        self._axes = {
            self.values[int(value)]: [
                axes for axes in (order["axes"].get(value), self._oriented.get(int(value))) if axes
            ]
            for value in order["given"]
            if int(value) in self.values
        }
        start = time.perf_counter()
        try:
            made, types = self.compute(
                target, given, double=order["double"], rounded=order["rounded"]
            )
        except Exception as error:  # noqa: BLE001 - whatever Paddle raises; the row says it
            return {"key": order["key"], "error": _first_line(error)}
        out = Path(order["out"])
        out.unlink(missing_ok=True)  # whoever still looks at the last one must keep it
        np.save(out, made)
        return {
            "key": order["key"],
            "seconds": time.perf_counter() - start,
            "ops": types,
            "dtype": made.dtype.name,
            "double": order["double"],
            "axes": list(self._oriented.get(order["target"], ())),
        }

    def _turned(self, value: int, array: Array) -> Array:
        """Return a value in the axis order in which the program declares it."""
        import numpy as np

        turned = array
        for axes in self._axes.get(value, ()):
            turned = turned.transpose(np.argsort(axes))
        # Shown in the model's own order after all, whatever the program that ran made of it.
        declared = self._program.shape_of(value)
        straight = not _fits(declared, turned.shape) and _fits(declared, array.shape)
        return array if straight else turned

    def compute(
        self, target: int, given: Mapping[int, Path], *, double: bool, rounded: bool
    ) -> tuple[Array, list[str]]:
        """Return one value, and the types of the ops it took.

        Args:
            target: its id in the exported program.
            given: files of the values to start from.
            double: compute in float64; otherwise as exported.
            rounded: round the parameters to bfloat16 first, to see how much the result hangs on it.
        """
        import numpy as np

        if target in given:  # the same value in another layout, which a pass has put in between
            return self._turned(target, np.load(given[target], mmap_mode="r")), []
        others = {
            twin: file for value, file in given.items() for twin in self._twins.get(value, [value])
        }
        ops = self._program.slice_back([target], others)
        eight = next((at for at in ops if self._program.type_of(at) in eight_bits.OPS), None)
        if eight is not None:
            return self._past(eight, target, others, double=double, rounded=rounded)
        piece = self._program.piece([target], others, double=double)
        missing = [value for value in piece.inputs if value not in others]
        if missing:
            raise UnknownProgramError("a value it is made from was not observed")
        with _own_scope() as scope:
            made = self._run(piece, scope, others, double=double, rounded=rounded)
        return made, [self._program.type_of(at) for at in ops]

    def _run(
        self,
        piece: Piece,
        scope: Any,  # noqa: ANN401 - Paddle has no types
        given: Mapping[int, Path],
        *,
        double: bool,
        rounded: bool,
    ) -> Array:
        import numpy as np
        import paddle
        from paddle.base import core

        path = self._folder / "piece.json"
        path.write_text(piece.text, encoding="utf-8")
        program = paddle.static.Program()
        core.deserialize_pir_program(str(path), program, 1)
        place = core.CPUPlace()
        for name in piece.parameters:
            array = self._parameters.get(name)
            if array is None:  # not in the file: scratch space, such as the state of a dropout
                array = np.zeros(1, np.uint8)
            scope.var(name).get_tensor().set(_ready(array, double=double, rounded=rounded), place)
        forget(self._parameters)
        feed: dict[str, Any] = {}
        held: list[Array] = []
        for value in piece.inputs:
            declared = self._program.dtype_of(value)
            array = self._turned(value, np.load(given[value], mmap_mode="r"))
            given_here = _as(array, "float64" if double else declared, declared)
            # An op that works in place writes into what it is fed; a mapped file is not for that.
            held.append(given_here if given_here.flags.writeable else given_here.copy())
            feed[feed_name(value)] = core.DenseTensor()
            feed[feed_name(value)].set(held[-1], place, True)  # noqa: FBT003 - Paddle's: no copy
        with paddle.static.scope_guard(scope):
            made = paddle.static.Executor(place).run(
                program, feed=feed, fetch_list=[], return_numpy=False
            )
        return _looked_at(made[0])

    def _past(
        self, at: int, target: int, given: Mapping[int, Path], *, double: bool, rounded: bool
    ) -> tuple[Array, list[str]]:
        """Compute a value whose piece goes to 8 bits or back, which is done apart."""
        import numpy as np

        source, scale, *zero = self._program.operands_of(at)[:3]
        (result, *_) = self._program.results_of(at)
        types: list[str] = []
        held = self._parameters.get(self._program.parameter_of(source))
        if held is None:
            held, types = self.compute(source, given, double=double, rounded=rounded)
        limit = self._parameters.get(self._program.parameter_of(scale))
        if limit is None:
            raise UnknownProgramError("the scale of its 8 bits is no parameter")
        shift = self._parameters.get(self._program.parameter_of(zero[0])) if zero else None
        if shift is not None and np.any(shift):
            raise UnknownProgramError("its 8 bits have a zero point")
        kind = self._program.type_of(at)
        made = eight_bits.through(kind, held, limit, self._program.attributes_of(at))
        types = [*types, kind]
        if result == target:
            return made, types
        file = self._folder / f"eight_bits_{result}.npy"
        np.save(file, made)
        self._axes.pop(result, None)
        rest, more = self.compute(target, {**given, result: file}, double=double, rounded=rounded)
        return rest, [*types, *more]


class _Lent:
    """A tensor of the executor as numpy takes it without a copy: a whole layer's is large."""

    def __init__(self, tensor: Any) -> None:  # noqa: ANN401 - Paddle has no types
        self._tensor = tensor

    def __dlpack__(self, **_: object) -> Any:  # noqa: ANN401 - a capsule
        return self._tensor._to_dlpack()  # noqa: SLF001 - there is no other way

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # memory of the CPU


def _looked_at(tensor: Any) -> Array:  # noqa: ANN401
    """Return a tensor's values, where they lie if that can be."""
    import numpy as np

    try:
        looked: Array = np.from_dlpack(_Lent(tensor))
    except (AttributeError, TypeError, ValueError, RuntimeError, BufferError):
        return np.array(tensor)  # bfloat16 and bool, say, are no types of that protocol
    return looked


@contextlib.contextmanager
def _own_scope() -> Iterator[Any]:
    """Give a scope, and take its memory back.

    Paddle keeps every scope it has ever made, with all that a run has left in it, until it is told
    to let go; and an executor hangs in a circle of objects that only a collection ends.
    """
    from paddle.base import core

    scope = core.Scope()
    try:
        yield scope
    finally:
        gc.collect()
        scope.drop_kids()
        scope.erase(scope.local_var_names())
        scope._remove_from_pool()  # noqa: SLF001 - there is no other way
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def _fits(declared: Sequence[int], shape: Sequence[int]) -> bool:
    return len(declared) == len(shape) and all(
        want in (-1, have) for want, have in zip(declared, shape, strict=True)
    )


def _as(array: Array, floating: str, declared: str) -> Array:
    """Return a value in the type that the piece declares for it."""
    import numpy as np

    # Not ascontiguousarray, which turns a number without axes into one with an axis.
    if declared not in _FLOATS:
        return np.asarray(array, declared, order="C")
    if floating == "bfloat16":
        return _bfloat16_bits(array)
    return np.asarray(array, floating, order="C")


def _ready(array: Array, *, double: bool, rounded: bool) -> Array:
    import numpy as np

    if array.dtype.kind not in _FLOAT_KINDS and array.dtype != np.uint16:
        return np.asarray(array, order="C")
    values = (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array
    if rounded:
        values = (_bfloat16_bits(values).astype(np.uint32) << 16).view(np.float32)
    if double:
        return np.asarray(values, np.float64, order="C")
    return np.asarray(values if rounded else array, order="C")


def _bfloat16_bits(array: Array) -> Array:
    """Return numbers rounded to the nearest bfloat16, ties to even, as Paddle takes them."""
    import numpy as np

    single = np.asarray(array, np.float32, order="C")
    bits = single.view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(single), np.uint16(0x7FC0), rounded)


def _translate(model: Path, folder: Path) -> tuple[str, dict[str, list[tuple[int, int]]]]:
    """Return an older export as the text of a PIR program, and where each of its names stands."""
    import paddle
    from paddle.base import core

    description = core.ProgramDesc(model.read_bytes())
    program, named = paddle.pir.translate_to_pir_with_param_map(description)
    path = folder / "translated.json"
    core.serialize_pir_program(program, str(path))
    places = {op.id(): at for at, op in enumerate(program.global_block().ops)}
    names: dict[str, list[tuple[int, int]]] = {}
    for name, values in named.items():
        for value in values:
            maker = value.get_defining_op()
            results = [result.is_same(value) for result in maker.results()]
            if maker.id() in places and True in results:
                places_of_name = names.setdefault(name, [])
                places_of_name.append((places[maker.id()], results.index(True)))
    return path.read_text(encoding="utf-8"), names


def _ids(program: ProgramText, names: Mapping[str, list[tuple[int, int]]]) -> dict[str, list[int]]:
    """Return the values that names stand for, by their place in the whole text."""
    every = program.all_results()
    return {
        name: [every[at][result] for at, result in places if result < len(every[at])]
        for name, places in names.items()
    }


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("(")] or lines or [type(error).__name__]
    return told[0][:300]


if __name__ == "__main__":
    answer_request(work)
