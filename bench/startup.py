"""How long ``tipcheck --help`` takes, against a Python that does nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ratios import Row, Table, interleaved

TITLE = "Start-up"
HOW = "Time of `tipcheck --help` divided by the time of `python -c pass`, same interpreter."
ROUNDS = 31


def measure() -> Table:
    """Measure the command as installed."""
    command = Path(sys.executable).parent / "tipcheck"
    times = interleaved(
        {
            "help": lambda: subprocess.run(
                [command, "--help"], stdout=subprocess.DEVNULL, check=True
            ),
            "pass": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
        },
        ROUNDS,
    )
    ratio = times["help"] / times["pass"]
    return Table(HOW, (Row("tipcheck --help", ratio, "x python -c pass", "at most 3"),))
