"""The ``tipcheck`` command: reads the arguments, calls one room, shows the result with ``report``.

Comes in: argv.
Goes out: text on the terminal and an exit code: 0 all good, 1 a check failed, 2 wrong usage or
config, 3 the tool itself or its environment failed.
May import: every room, each only inside the function that uses it.
"""
