"""Reads the tensors that a hook is shown: which of the program it is, and its true values.

A tensor in oneDNN's own layout is a raw buffer to numpy. Copying it with a dygraph op brings it
into the model's own axis order; that is done for these tensors only, because it costs, and
everything else is looked at where it lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tipcheck.backends.trace import TracedTensor

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import numpy.typing as npt

    from tipcheck.backends.graph import Graph

    Array = npt.NDArray[Any]
    Sink = Callable[[TracedTensor, "Array | None"], None]

ONEDNN = "ONEDNN"
_PLAIN = ("float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool", "float16")


class UnreadableError(Exception):
    """The values of a tensor cannot be brought into the model's own axis order."""


def values_of(tensor: Any) -> Array:  # noqa: ANN401 - Paddle has no types
    """Return true values; bfloat16 as float32, which holds each of its numbers.

    The array may be a view of the tensor: it is good until the hook returns.

    Raises:
        UnreadableError: with the reason.
    """
    import numpy as np
    import paddle

    dtype = dtype_of(tensor)
    try:
        if str(tensor.layout) == ONEDNN and (len(tensor.shape) > 1 or dtype == "bfloat16"):
            moved = tensor.astype("float32") if dtype == "bfloat16" else paddle.assign(tensor)
            if str(moved.layout) == ONEDNN:
                raise UnreadableError("its memory layout could not be undone")
            return np.from_dlpack(moved)
        if dtype == "bfloat16":
            bits: Array = np.array(tensor).astype(np.uint32)
            return (bits << 16).view(np.float32)
        if dtype in _PLAIN and tensor.place.is_cpu_place() and dtype != "bool":
            return np.from_dlpack(tensor)
        return np.asarray(tensor)
    except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        text = str(error).strip().splitlines()
        raise UnreadableError(text[-1][:200] if text else type(error).__name__) from None


def dtype_of(tensor: Any) -> str:  # noqa: ANN401
    """Return the true element type."""
    return str(tensor.dtype).rsplit(".", 1)[-1]


class Watcher:
    """Tells which value of a graph each call of the hook is about, and hands it on.

    Args:
        graph: the program that runs.
        numbers: for PIR the number in a variable's name, and the value it stands for.
    """

    def __init__(self, graph: Graph, numbers: Mapping[int, int]) -> None:
        self._graph = graph
        self._numbers = numbers
        self._number_of = {key: number for number, key in numbers.items()}
        self._shift = 0
        self._known: dict[str, int] = {}
        self._fetched = {f"fetch_name_{place}": key for place, key in enumerate(graph.outputs)}
        self._parameters = graph.parameters.keys()
        self._cursor = 0
        self._seen = 0
        self._sink: Sink | None = None
        self._want: Collection[int] | None = None
        self.failure: BaseException | None = None

    def watch(self, sink: Sink | None, want: Collection[int] | None) -> None:
        """Say where tensors of the next run go.

        Args:
            sink: called with each tensor; its values are None unless wanted.
            want: ids of values whose values are wanted; None means all.
        """
        self._sink, self._want = sink, want
        self._cursor = self._seen = 0
        self.failure = None

    def hook(self, op: str, name: str, tensor: Any) -> None:  # noqa: ANN401
        """Be called by the predictor for each output of each op."""
        if self._sink is None or self.failure is not None:
            return
        try:
            self._look(self._sink, op, name, tensor)
        except BaseException as error:  # noqa: BLE001 - must not travel through Paddle's C++
            self.failure = error

    def _look(self, sink: Sink, op: str, name: str, tensor: Any) -> None:  # noqa: ANN401
        if name in self._parameters or not tensor._is_initialized():  # noqa: SLF001
            return  # a parameter that an op gives back as it is; a by-product nobody filled
        shape = tuple(tensor.shape)
        op_type, index, key = self._which(op, name, shape, dtype_of(tensor))
        wanted = self._want is None or key in self._want
        values, because = None, ""
        if wanted:
            try:
                values = values_of(tensor)
            except UnreadableError as error:
                because = str(error)
        traced = TracedTensor(
            index=self._seen,
            op_type=op_type,
            name=name,
            layer_path=self._graph.ops[index].layer_path if index >= 0 else "",
            dtype=dtype_of(tensor),
            layout=str(tensor.layout),
            shape=shape,
            readable=not because,
            op_index=index,
            value=key,
            unreadable_because=because,
        )
        self._seen += 1
        sink(traced, values)

    def _which(
        self, op: str, name: str, shape: tuple[int, ...], dtype: str
    ) -> tuple[str, int, int]:
        if self._graph.kind == "pir":
            return self._which_pir(op, name, shape, dtype)
        return self._which_older(op, name)

    def _which_pir(
        self, op: str, name: str, shape: tuple[int, ...], dtype: str
    ) -> tuple[str, int, int]:
        op_type, _, number = op.rpartition(":")
        index = int(number) if number.isdigit() else -1
        ops = self._graph.ops
        if not 0 <= index < len(ops) or ops[index].type != op_type:
            return op_type or op, -1, -1  # inside of control flow, which counts for itself
        if name not in self._known:
            self._known[name] = self._result(index, name, shape, dtype)
        return op_type, index, self._known[name]

    def _result(self, index: int, name: str, shape: tuple[int, ...], dtype: str) -> int:
        results = self._graph.ops[index].results
        if len(results) == 1:
            self._calibrate(results[0], name)
            return results[0]  # whatever shape the program had written down for it
        free = [key for key in results if key not in self._known.values()]
        fitting = [key for key in free if self._fits(key, shape, dtype)] or free
        told = self._fetched.get(name, self._told(name))
        if told in fitting:
            return told
        return fitting[0] if len(fitting) == 1 else -1

    def _told(self, name: str) -> int:
        number = name.rpartition("_")[2]
        return self._numbers.get(int(number) - self._shift, -1) if number.isdigit() else -1

    def _calibrate(self, key: int, name: str) -> None:
        """Learn from a tensor that is certain by how much the numbers in names are off by now."""
        number = name.rpartition("_")[2]
        if number.isdigit() and key in self._number_of:
            self._shift = int(number) - self._number_of[key]

    def _fits(self, key: int, shape: tuple[int, ...], dtype: str) -> bool:
        value = self._graph.values[key]
        return (
            len(value.shape) == len(shape)
            and all(a in (-1, b) for a, b in zip(value.shape, shape, strict=True))
            and value.dtype in ("", dtype)
        )

    def _which_older(self, op: str, name: str) -> tuple[str, int, int]:
        for index in range(self._cursor, len(self._graph.ops)):
            one = self._graph.ops[index]
            if one.type != op:
                continue
            for key in one.results:
                if self._graph.values[key].name == name:
                    self._cursor = index
                    return op, index, key
        return op, -1, -1
