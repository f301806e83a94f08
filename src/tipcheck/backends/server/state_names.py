"""The names of the questions about state and shape: shared by who asks and who judges."""

RUN_N = "run N"
EQUAL_ROWS = "equal rows"
PERMUTED = "permuted rows"
BATCH_ONE = "batch 1"
SHAPES = "shapes A, B, A"
TWO_MODELS = "two models"
CLONE = "clone"
THREADS = "two threads"
CHECKS = (RUN_N, EQUAL_ROWS, PERMUTED, BATCH_ONE, SHAPES, TWO_MODELS, CLONE, THREADS)
LEFT_OUT = "left out"
"""How the reason begins why something was not asked that could have been."""
ABOUT_ROWS = (EQUAL_ROWS, PERMUTED, BATCH_ONE)
"""These hold only for models whose rows do not depend on each other."""
