"""Finds out what this machine can run, without importing a framework in the asking process.

Comes in: nothing but the machine. Goes out: a diagnosis, one line for each way of running a model.
"""
