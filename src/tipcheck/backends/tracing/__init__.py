"""Runs a model while it is watched, and hands over its tensors one by one.

Comes in: a model, a run mode, inputs. Goes out: the graph of what really ran, and its tensors in op
order through bounded memory. ``execution`` is the near end; ``worker`` is what runs in the process.
"""
