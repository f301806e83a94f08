"""The ladder over a dozen models: no false alarm, and no real difference that is not known.

Not a benchmark of time. ``python bench/ladder_sweep.py`` climbs the ladder over every model of
``ladder_zoo.py`` and over the exports named on the command line, and compares every rung that is
not PASS with ``known_differences.json``. What is not listed there ends it with exit code 1.
``--page`` writes the list as the page of the documentation.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tipcheck.compare.verdict import Status
from tipcheck.stage_ladder.verifying import verify_target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tipcheck.stage_ladder.rung import LadderResult, Rung

HERE = Path(__file__).parent
LIST = HERE / "known_differences.json"
PAGE = HERE.parent / "docs" / "known-differences.md"
BEGIN, END = "<!-- sweep:begin -->", "<!-- sweep:end -->"
ZOO = (
    "mobilenet_v3",
    "resnet50",
    "vit",
    "encoder",
    "recurrent",
    "detector",
    "mynet",
    "linear_quanter",
    "whole_numbers",
    "nested",
    "int8_json",
    "int8_pdmodel",
)
_BUILT = ("int8_json", "int8_pdmodel")
"""Exports that ``ladder_quantised.py`` writes."""
_GOOD = (Status.PASS, Status.UNSUPPORTED)


def main() -> int:
    """Climb, compare, and say what is not known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="names of the zoo, or NAME=PATH of an export")
    parser.add_argument("--page", action="store_true", help="write the page, and climb nothing")
    options = parser.parse_args()
    known = json.loads(LIST.read_text(encoding="utf-8"))
    if options.page:
        write_page(known)
        return 0
    unlisted = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models or ZOO:
            label, _, path = name.partition("=")
            result = verify_target(path or _target(name, Path(folder)))
            problems = unknown(label, result, known)
            unlisted += len(problems)
            print(f"{label:<14} {result.status.value:<8} {result.sentence}", flush=True)
            for problem in problems:
                print(f"  not in {LIST.name}: {problem}")
    print(f"{unlisted} differences are not known")
    return 1 if unlisted else 0


def _target(name: str, folder: Path) -> str:
    """Return what to verify; a quantised model is written first."""
    if name not in _BUILT:
        return f"{HERE / 'ladder_zoo.py'}:{name}"
    form = name.removeprefix("int8_")
    if not (folder / form).exists():
        program = [sys.executable, str(HERE / "ladder_quantised.py"), str(folder)]
        subprocess.run(program, check=True, capture_output=True)
    return str(folder / form)


def unknown(model: str, result: LadderResult, known: Sequence[Mapping[str, object]]) -> list[str]:
    """Return every rung that is not good and not listed, with what it says."""
    return [
        f"{rung.stage}: {rung.status.value}: {rung.reason}"
        for rung in result.rungs
        if rung.status not in _GOOD and not any(_covers(entry, model, rung) for entry in known)
    ]


def _covers(entry: Mapping[str, object], model: str, rung: Rung) -> bool:
    """Whether an entry is about this rung; one that only inherited a difference says so itself."""
    inherited = rung.reason.startswith("as ")
    return (
        entry["model"] == model
        and rung.stage in entry["stages"]  # type: ignore[operator]
        and rung.status.value == entry["status"]
        and (inherited or str(entry["says"]) in rung.reason)
    )


def write_page(known: Sequence[Mapping[str, object]]) -> None:
    """Put the list into the page of the documentation."""
    lines = ["| model | stages | verdict | what differs | command |", "|---|---|---|---|---|"]
    for entry in known:
        stages = ", ".join(entry["stages"])  # type: ignore[arg-type]
        command = f"`tipcheck verify {entry['target']}`"
        lines.append(
            f"| {entry['model']} | {stages} | {entry['status']} | {entry['what']} | {command} |"
        )
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(lines)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    sys.exit(main())
