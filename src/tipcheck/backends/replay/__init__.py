"""Computes a piece of a model alone, in float64, from values it is handed.

Comes in: an exported program, and tensors of an execution. Goes out: what its ops should have made
of them. ``replaying`` is the near end; ``worker`` is what runs in the process.
"""
