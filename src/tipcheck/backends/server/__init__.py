"""One process that has imported Paddle and forks a child for every stage.

Comes in: jobs. Goes out: what each stage gave, how it answered questions about its state, or how it
died. ``link`` is the near end of it; the rest runs in the server and its children.
"""
