"""Write the programs of examples/export_ways, and what they print, into the page about exporting.

python docs/make_exporting.py

The pages hold a comment for every program; what stands between it and the next `end` is replaced.
The programs are run twice: as they are, and with FLAGS_enable_pir_api=0 for the table of formats.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WAYS = ROOT / "examples" / "export_ways"
PAGES = (ROOT / "docs/guide/exporting.md", ROOT / "docs/zh/guide/exporting.md")
_PROGRAM = re.compile(r"(<!-- program: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_TABLE = re.compile(r"(<!-- older -->\n).*?(<!-- end -->)", re.DOTALL)


def run_programs(folder: Path, *, older: bool) -> dict[str, tuple[bool, str, str]]:
    """Run all programs; return for each whether it succeeded, what it printed, how it ended."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("FLAGS_")}
    if older:
        env["FLAGS_enable_pir_api"] = "0"
    command = [sys.executable, str(WAYS / "run_all.py"), f"--output-dir={folder}"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    failed = set(re.findall(r"^== (\w+) FAILED", done.stdout, re.MULTILINE))
    found = {}
    for path in sorted(folder.glob("*.txt")):
        told = path.with_suffix(".err").read_text(encoding="utf-8").strip().splitlines()
        errors = [line.strip() for line in told if re.match(r"\s*\w*Error: ", line)]
        ending = errors[-1] if errors else "died on a signal"
        found[path.stem] = (path.stem not in failed, path.read_text(encoding="utf-8"), ending)
    if not found:
        raise SystemExit(f"no program ran: {done.stderr}")
    return found


def listing(name: str, printed: str) -> str:
    """Return a program without its docstring, and what it prints."""
    source = (WAYS / f"{name}.py").read_text(encoding="utf-8")
    code = source.split('"""\n', 1)[1].strip()
    return f"```py\n{code}\n```\n\n```text\n{printed.rstrip()}\n```\n"


def table(older: dict[str, tuple[bool, str, str]]) -> str:
    """Return which programs also run in the older graph mode."""
    rows = ["| | `.json` | `.pdmodel` |", "|---|---|---|"]
    for name, (good, _, ending) in older.items():
        reason = re.sub(r" \(at /.*", "", ending.split(". Please")[0])
        rows.append(f"| `{name}` | ✓ | {'✓' if good else f'✗ {reason}'} |")
    return "\n".join(rows) + "\n"


def write(page: str, runs: dict[str, tuple[bool, str, str]], rows: str) -> str:
    """Return a page with its listings and its table written anew.

    Raises:
        KeyError: it names a program that there is not.
    """
    page = _PROGRAM.sub(lambda m: m[1] + listing(m[2], runs[m[2]][1]) + m[3], page)
    return _TABLE.sub(lambda m: m[1] + rows + m[2], page)


def main() -> None:
    """Write both pages."""
    with tempfile.TemporaryDirectory() as scratch:
        runs = run_programs(Path(scratch) / "now", older=False)
        rows = table(run_programs(Path(scratch) / "older", older=True))
    failed = [name for name, (good, _, _) in runs.items() if not good]
    if failed:
        raise SystemExit(f"{', '.join(failed)} failed: {WAYS / 'run_all.py'} shows how")
    for path in PAGES:
        path.write_text(write(path.read_text(encoding="utf-8"), runs, rows), encoding="utf-8")
        sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
