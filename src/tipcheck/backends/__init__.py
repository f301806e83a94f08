"""Runs a model in each of the ways it will ever be run, each in a worker process of its own.

Comes in: a model, its inputs, and the name of a stage.
Goes out: the outputs of that stage, and on request its trace; or how the worker died.
May import: paddle, onnxruntime, openvino. No other room does, besides ``quant`` and the warm server
of ``step_runner``; and here only the worker processes do, so that a crash stays theirs.
"""

from tipcheck.backends.catalogue import RUN_MODES, STAGES, Need, Way
from tipcheck.backends.graph import Graph, GraphOp, GraphValue, PassRecord
from tipcheck.backends.outputs import StageOutputs
from tipcheck.backends.trace import Trace, TracedTensor

__all__ = [
    "RUN_MODES",
    "STAGES",
    "Graph",
    "GraphOp",
    "GraphValue",
    "Need",
    "PassRecord",
    "StageOutputs",
    "Trace",
    "TracedTensor",
    "Way",
]
