"""Writes the check of an export into a repo's own source, and takes it out again to the byte.

Comes in: Python files with a ``jit.save`` in them.
Goes out: the same files with five more lines behind each of those, and ``check_inference.py`` where
they find it.
May import: libcst, the standard library.
"""
