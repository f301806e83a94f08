"""Shows any result: on the terminal, and in files for people and machines.

Comes in: the words of any other room (a ``Comparison``, a ``Diagnosis``, a run ...).
Goes out: text, tables and files. Nothing is decided here.
May import: rendering libraries, and the words of every room.
"""
