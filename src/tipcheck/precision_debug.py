"""The names of Paddle's own example script for precision debugging, on top of tipcheck.

For scripts that were written around ``tensorrt_precision_debug.py`` and its helper: the same
functions, the same lists, the same arguments. What was wrong with them is put right underneath:
values come in the model's own axis order and true type, a name that is used twice keeps both
tensors, and a shape that does not fit is a row that says so. The page *From the example script*
shows what one writes instead.

Hooks run where the predictor runs: in the caller's process.
"""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcheck.backends.tracing.observe import UnreadableError, values_of
from tipcheck.backends.tracing.own_baseline import plain_predictor
from tipcheck.blame.choice import read_names
from tipcheck.blame.comparer import judge_pair
from tipcheck.compare.judge import Rules
from tipcheck.compare.verdict import TensorVerdict
from tipcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[Any]

check_diff_tensor_names: list[str] = []
"""Names of all tensors of the baseline, in op order."""
check_diff_tensor2op: dict[str, str] = {}
"""The op that made each of them."""
check_diff_baseline_tensor: dict[str, Array] = {}
"""The values of each of them; where a name came more than once, the last."""
check_diff_mark_tensor_names: list[str] = []
"""Names of the tensors to check; empty checks all."""
check_diff_mismatch_tensors_info: list[CheckedTensor] = []
"""What was checked so far, in op order."""

_versions: dict[str, list[Array]] = {}
_looked: dict[str, int] = {}


@dataclass(frozen=True, slots=True)
class CheckedTensor:
    """One tensor that was checked: the op that made it, its name, and the verdict."""

    op_type: str
    tensor_name: str
    verdict: TensorVerdict | None
    reason: str = ""


def reset() -> None:
    """Forget everything, before another model is looked at."""
    for kept in (
        check_diff_tensor_names,
        check_diff_tensor2op,
        check_diff_baseline_tensor,
        check_diff_mark_tensor_names,
        check_diff_mismatch_tensors_info,
        _versions,
        _looked,
    ):
        kept.clear()


def init_baseline_predictor(args: Any = None, **options: Any) -> Any:  # noqa: ANN401 - as the script has it
    """Return the baseline's predictor: no optimisation, no memory reuse, float32, on this CPU.

    Args:
        args: an object with ``model_file`` and ``params_file``, such as parsed arguments.
        options: the same by name.
    """
    model = options.get("model_file") or getattr(args, "model_file", None)
    params = options.get("params_file") or getattr(args, "params_file", None)
    if not model:
        raise UsageError("which model?", hint="give model_file=, and params_file= if it needs one")
    return plain_predictor(Path(model), Path(params) if params else None)


def save_baseline_hook(op_type: str, tensor_name: str, tensor: Any) -> None:  # noqa: ANN401
    """Keep a tensor of the baseline; register it with ``register_output_hook``."""
    try:
        values = values_of(tensor).copy()
    except UnreadableError:
        return
    if tensor_name not in _versions:
        check_diff_tensor_names.append(tensor_name)
    check_diff_tensor2op[tensor_name] = op_type
    check_diff_baseline_tensor[tensor_name] = values
    _versions.setdefault(tensor_name, []).append(values)


def assert_tensor_close_hook(op_type: str, tensor_name: str, tensor: Any) -> None:  # noqa: ANN401
    """Check a tensor against the baseline's of the same name; register it likewise.

    A name that comes again is held against what the baseline had under it at that time. The verdict
    goes to ``check_diff_mismatch_tensors_info``.
    """
    if check_diff_mark_tensor_names and tensor_name not in check_diff_mark_tensor_names:
        return
    kept = _versions.get(tensor_name)
    if not kept:
        return
    at = _looked.get(tensor_name, 0)
    _looked[tensor_name] = at + 1
    try:
        values = values_of(tensor)
    except UnreadableError as error:
        found = CheckedTensor(op_type, tensor_name, None, str(error))
    else:
        dtype = str(tensor.dtype).rpartition(".")[2]
        expected = kept[min(at, len(kept) - 1)]
        verdict = judge_pair([dtype, expected.dtype.name], expected, values, Rules())
        found = CheckedTensor(op_type, tensor_name, verdict, verdict.reason)
    check_diff_mismatch_tensors_info.append(found)


def get_mark_names_from_serialized_json(
    pattern: str = "cache/engine_info_*.json",
) -> list[str]:
    """Return the outputs of TensorRT's fused layers, and mark them to be checked.

    Raises:
        UsageError: no file fits the pattern.
    """
    files = sorted(glob.glob(pattern))  # noqa: PTH207 - a pattern may be absolute
    if not files:
        raise UsageError(
            "there is no such file",
            where=pattern,
            hint="run the model with config.enable_tensorrt_inspector(True) first",
        )
    for file in files:
        for name in read_names(Path(file).read_text(encoding="utf-8"), engine=True):
            if name not in check_diff_mark_tensor_names:
                check_diff_mark_tensor_names.append(name)
    return check_diff_mark_tensor_names


def assign_mark_names(start: str | Sequence[str], end: str | Sequence[str]) -> list[str]:
    """Mark the tensors of the baseline from one of ``start`` to one of ``end``, both included.

    Raises:
        UsageError: a name is not among those that ``save_baseline_hook`` has seen.
    """
    first, last = (([ends] if isinstance(ends, str) else list(ends)) for ends in (start, end))
    for name in (*first, *last):
        if name not in check_diff_tensor_names:
            raise UsageError(
                f"the baseline has no tensor {name!r}",
                hint="register save_baseline_hook and run the baseline first",
            )
    inside = False
    for name in check_diff_tensor_names:
        inside = inside or name in first
        if inside and name not in check_diff_mark_tensor_names:
            check_diff_mark_tensor_names.append(name)
        inside = inside and name not in last
    return check_diff_mark_tensor_names
