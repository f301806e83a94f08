"""Reads exported models as files: programs, parameters, and what can be made from them.

Comes in: the path of an export. Goes out: its inputs, ops and parameters; the same program in
float64 or as ONNX. Only what makes a new file needs a framework, in a worker.
"""
