"""Notices what a user's own command exports, and keeps what it takes to verify that.

Comes in: a command, started as it was typed, in an environment that ``inject`` prepared.
Goes out: one folder for each export: what was saved and where, the inputs, the layer's own answers.
May import: the standard library; numpy and paddle only in the processes forked for an export. The
modules are loaded into other people's processes, under a name of their own, so they import each
other relatively and nothing else of tipcheck before that fork.
"""
