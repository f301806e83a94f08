"""Runs every benchmark and writes the tables of the benchmark page: `make bench`.

`python bench/run.py NAME` runs one and writes its table; those of the others stay.

A benchmark is a module of this folder with ``TITLE``, ``measure() -> Table`` and a docstring that
says what is compared with what. Everything is a ratio to something real measured in the same run;
absolute times would say more about the machine than about tipcheck.
"""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from ratios import Table, markdown

if TYPE_CHECKING:
    from collections.abc import Mapping

BENCHMARKS = (
    "comparator",
    "startup",
    "planning",
    "step_overhead",
    "warm",
    "chain",
    "pact_int8",
    "ladder_cost",
    "ladder_memory",
    "verify_each",
    "debug",
)
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def main() -> int:
    """Run the chosen benchmarks, print their tables, and write the page when all were run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", choices=[[], *BENCHMARKS], help="default: all of them")
    names = parser.parse_args().only or BENCHMARKS
    sections = {}
    missed = 0
    for name in names:
        module = importlib.import_module(name)
        print(f"{module.TITLE} ...", flush=True)
        table: Table = module.measure()
        sections[module.TITLE] = markdown(table)
        missed += sum(not row.holds for row in table.rows)
        print(f"\n{markdown(table)}\n", flush=True)
    _write_page(sections)
    print(f"{missed} limits missed" if missed else "every limit holds")
    return 1 if missed else 0


def _write_page(measured: Mapping[str, str]) -> None:
    """Put tables into the page; those of benchmarks that were not run stay."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    old, _, after = rest.partition(END)
    sections = dict(part.strip().split("\n\n", 1) for part in old.split("\n### ")[1:])
    sections |= measured
    machine = f"Measured with Python {platform.python_version()} on {platform.machine()}."
    text = "\n\n".join(f"### {title}\n\n{table}" for title, table in sections.items())
    PAGE.write_text(f"{before}{BEGIN}\n{machine}\n\n{text}\n{END}{after}", encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    raise SystemExit(main())
