"""Layers as objects: found, called, exported, recorded and trained without changing them.

Comes in: a layer, or where to find one. Goes out: its answers, its export, its steps of training.
"""
