"""The comparator against a plain read of both arrays, and against the naive way.

The naive way is what the public example script for precision debugging does to each tensor: a copy
of both sides as Python floats (float64), whole-array subtraction, absolute values, a division,
``np.isclose``, minima and maxima.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ratios import Row, Table, interleaved
from tipcheck.compare.measure import THREADED_FROM
from tipcheck.compare.measure import measure as walk
from tipcheck.compare.tensors import MemoryTensor

if TYPE_CHECKING:
    import numpy.typing as npt

TITLE = "Comparator"
HOW = (
    "Time to compare two float32 arrays with all measures, divided by the time to read both once "
    "(`np.sum`); then how many times faster that is than the naive way, on one core; and the "
    "memory that each needs on top of the two arrays."
)
SIZES = {"1 M": 1 << 20, "16 M": 16 << 20, "64 M": 64 << 20}
ROUNDS = {"1 M": 41, "16 M": 11, "64 M": 7}


def measure() -> Table:
    """Measure every size."""
    rows: list[Row] = []
    for name, size in SIZES.items():
        expected, actual = pair(size)
        times = timed(expected, actual, ROUNDS[name])
        last = name == "64 M"
        read, naive_time = times["read"], times["naive"]
        for cores, limit in (("one core", "at most 6"), ("two cores", "at most 3.5")):
            if cores == "two cores" and size < THREADED_FROM:
                continue  # the comparator uses one there
            ratio = times[cores] / read
            rows.append(Row(f"{name} elements, {cores}", ratio, "x a read", limit if last else ""))
        faster = naive_time / times["one core"]
        limit = "at least 8" if last else ""
        rows.append(Row(f"{name} elements, against naive", faster, "x faster", limit))
        del expected, actual
        for way in ("compare", "naive"):
            limit = "at most 64" if way == "compare" else ""
            rows.append(Row(f"{name} elements, memory of {way}", memory(way, size), "MB", limit))
    return Table(HOW, tuple(rows))


def timed(expected: npt.NDArray[Any], actual: npt.NDArray[Any], rounds: int) -> dict[str, float]:
    """Return the median time of each way, in seconds."""
    return interleaved(
        {
            "read": lambda: (np.sum(expected), np.sum(actual)),
            "one core": lambda: compare(expected, actual, 1),
            "two cores": lambda: compare(expected, actual, 2),
            "naive": lambda: naive(expected, actual),
        },
        rounds,
    )


def pair(size: int) -> tuple[Any, Any]:
    """Return two arrays that differ as two float32 executions of one model do."""
    random = np.random.default_rng(0)
    expected = random.standard_normal(size, dtype=np.float32)
    noise = random.standard_normal(size, dtype=np.float32)
    noise *= np.float32(1e-6)
    noise += expected
    return expected, noise


def compare(expected: npt.NDArray[Any], actual: npt.NDArray[Any], threads: int) -> object:
    """Compare the way ``tipcheck compare`` does."""
    one, other = MemoryTensor(expected), MemoryTensor(actual)
    return walk(one, other, rtol=1e-4, atol=1e-4, decode=lambda block: block, threads=threads)


def naive(expected: npt.NDArray[Any], actual: npt.NDArray[Any]) -> object:
    """Compare with whole-array expressions."""
    expected, actual = expected.astype(float), actual.astype(float)
    with np.errstate(all="ignore"):
        difference = np.abs(actual - expected)
        relative = difference / np.abs(expected)
        close = np.isclose(actual, expected, rtol=1e-4, atol=1e-4)
    extremes = (actual.min(), actual.max(), expected.min(), expected.max())
    return difference.max(), relative.max(), close.size - np.count_nonzero(close), extremes


def memory(way: str, size: int) -> float:
    """Return the peak memory of one comparison above its inputs, in MB, in a fresh process."""
    program = (
        "import resource, sys; from pathlib import Path\n"
        f"sys.path.insert(0, {sys.path[0]!r})\n"
        "import comparator\n"
        f"pair = comparator.pair({size})\n"
        "for part in pair: part.sum()\n"
        "comparator.compare(pair[0][:10], pair[1][:10], 2)\n"
        "Path('/proc/self/clear_refs').write_text('5')\n"
        "peak = lambda: int(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])\n"
        "before = peak()\n"
        + ("comparator.compare(*pair, 2)\n" if way == "compare" else "comparator.naive(*pair)\n")
        + "print((peak() - before) / 1024)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(ran.stdout)
