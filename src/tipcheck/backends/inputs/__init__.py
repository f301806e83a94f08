"""Inputs for a model: drawn from its specs, or read from what the user has.

Comes in: specs, files, pictures or a callable. Goes out: named arrays, the same on every machine.
"""
