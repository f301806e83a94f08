"""Compares tensors where the baseline makes them: in its worker process, inside its hook.

The baseline's tensor is looked at where it lies, the candidate's in shared memory; neither is
copied, and neither is kept. Loaded by name by the worker, because workers know no other room.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tipcheck.compare.judge import Rules, judge
from tipcheck.compare.tensors import MemoryTensor
from tipcheck.compare.tolerance import threshold_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from tipcheck.backends.trace import TracedTensor
    from tipcheck.backends.tracing.pool import Receiver
    from tipcheck.compare.verdict import TensorVerdict

    Array = npt.NDArray[Any]

_COARSEST = ("bfloat16", "float16", "float32", "float64")


class Comparer:
    """The judge of one run.

    Args:
        order: with ``pairs``, a list of (candidate's value, baseline's value, axes to transpose the
            baseline's by), ``rules``, ``precision``, and ``observer`` if the caller looks too.
        receiver: where the candidate's tensors come from.
        tell: takes each finished row.
    """

    def __init__(
        self, order: dict[str, Any], receiver: Receiver, tell: Callable[[dict[str, Any]], None]
    ) -> None:
        self._receiver = receiver
        self._precision: str = order["precision"]
        self._tell = tell
        self._rules = Rules(**order["rules"])
        self._partners: dict[int, list[tuple[int, list[int]]]] = {}
        for candidate, baseline, axes in order["pairs"]:
            self._partners.setdefault(baseline, []).append((candidate, axes))
        self._inputs: dict[str, int] = order["inputs_of_baseline"]
        self.wanted = self._partners.keys()
        self._done: set[int] = set()
        self._observer = _observer(order.get("observer"), order)

    def take(self, tensor: TracedTensor, values: Array | None) -> None:
        """Compare one tensor of the baseline with all its partners; waits for those to come."""
        if tensor.value in self._done or tensor.value not in self._partners:
            return  # written again in place: the first one is what others were made from
        self._done.add(tensor.value)
        for candidate, axes in self._partners[tensor.value]:
            self._pair(candidate, axes, tensor, values)

    def finish(self, inputs: Mapping[str, Array]) -> None:
        """Compare what is made from the model's inputs directly, and let go of the rest."""
        for name, key in self._inputs.items():
            for candidate, axes in self._partners.get(key, ()):
                if name in inputs:
                    self._pair(candidate, axes, None, inputs[name])
        for tensor in self._receiver.rest():
            self._receiver.free(tensor.value)
        if self._observer is not None:
            self._tell({"observed": self._observer.finish()})

    def _pair(
        self, candidate: int, axes: list[int], tensor: TracedTensor | None, values: Array | None
    ) -> None:
        other = self._receiver.take(candidate)
        if other is None:
            self._tell({"candidate": candidate, "missing": True})
            return
        theirs = self._receiver.values(candidate)
        row = {"candidate": candidate, "dtype": other.dtype, "verdict": None, "unreadable": ""}
        if values is None or theirs is None:
            because = other.unreadable_because or (tensor.unreadable_because if tensor else "")
            row["unreadable"] = because or "its values could not be read"
        else:
            ours = values.transpose(axes) if axes else values
            kinds = [side.dtype for side in (tensor, other) if side is not None]
            if any(kind in _COARSEST for kind in kinds):
                kinds.append(self._precision)
            row["verdict"] = msgspec.to_builtins(judge_pair(kinds, ours, theirs, self._rules))
            if self._observer is not None:
                self._observer.compared(other, tensor, theirs, ours)
        del theirs
        self._tell(row)
        self._receiver.free(candidate)


def judge_pair(kinds: list[str], expected: Array, actual: Array, rules: Rules) -> TensorVerdict:
    """Judge two tensors by the tolerance of the coarser of their element types."""
    coarsest = next((name for name in _COARSEST if name in kinds), "")
    if not coarsest:
        return judge("", MemoryTensor(expected), MemoryTensor(actual), rules)
    limit = threshold_for(coarsest, rules.rtol, rules.atol)
    rules = Rules(limit.rtol, limit.atol, rules.equal_nan)
    return judge("", _working(expected), _working(actual), rules)


def _working(values: Array) -> MemoryTensor:
    """Half precision is judged in single: the two sides may hold different types on purpose."""
    return MemoryTensor(values.astype(np.float32) if values.dtype == np.float16 else values)


def _observer(name: str | None, order: dict[str, Any]) -> Any:  # noqa: ANN401 - the caller's own
    """Return the caller's own observer: ``module:name``, made with the order."""
    if not name:
        return None
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)(order)
