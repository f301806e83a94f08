"""A model that was loaded and does not run: what Paddle raised, in which op, what to try next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tipcheck.backends.told import told
from tipcheck.backends.tracing.run_modes import GPU_PLAIN, PLAIN
from tipcheck.errors import ToolError

if TYPE_CHECKING:
    from tipcheck.backends.graph import Graph

_OPERATOR = re.compile(r"\[operator < (\S+) > error\]")
_DOUBLES = "pir::ArrayAttribute<pir::DoubleAttribute>"
_WITH_DOUBLES = ("nearest_interp", "bilinear_interp", "bicubic_interp", "linear_interp")
"""Ops whose scale is a list of doubles, which oneDNN's instructions cannot take over in PIR."""


class CrashError(ToolError):
    """A model that was loaded did not run to its end."""


def crash_of(error: BaseException, graph: Graph) -> CrashError:
    """Return what a predictor raised, with the op and the pass known to stand behind it."""
    text = str(error)
    op = _named(text, graph)
    at = f" in {op}" if op else ""
    where = graph.run_mode
    return CrashError(f"Paddle raises{at}: {told(error)}", where=where, hint=_hint(graph))


def _named(text: str, graph: Graph) -> str:
    found = _OPERATOR.search(text)
    if found and not found[1].startswith("pd_kernel."):  # that is the name of all kernels
        return found[1]
    if _DOUBLES not in text:
        return ""
    ops = [op for op in graph.ops if op.type.rpartition(".")[2] in _WITH_DOUBLES]
    if not ops:
        return ""
    named = f"{ops[0].type}:{ops[0].index}"
    more = f" and {len(ops) - 1} more like it" if len(ops) > 1 else ""
    by = next((one.name for one in graph.passes if ops[0].type in one.added), "")
    return f"{named}{more}" + (f", which {by} has put there" if by else "")


def _hint(graph: Graph) -> str:
    """Return what to type next: the other format, or the mode that is nearest."""
    if graph.run_mode in (PLAIN, GPU_PLAIN):
        return "no optimisation is on: see whether these inputs fit the model"
    older = graph.model.endswith(".pdmodel")
    nearest = {
        "onednn_bf16": "onednn_fp32",
        "onednn_int8": "onednn_fp32",
        "onednn_fp32": "cpu_ir",
        "cpu_ir": "cpu_plain",
    }.get(graph.run_mode, "cpu_ir")
    other = "a .json" if older else "a .pdmodel (FLAGS_enable_pir_api=0)"
    return f"try --run-mode {nearest}, or export it as {other}"
