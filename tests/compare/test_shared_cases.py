"""The verdicts that were agreed on for the comparator, through the command line with files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tipcheck.cli.main import main

SHARED = Path(os.environ.get("TIPCHECK_SHARED", Path(__file__).parents[3] / "shared"))
CASES = SHARED / "compare" / "cases.json"
EXIT_CODES = {"PASS": 0, "FAIL": 1}


def cases() -> list[Any]:
    if not CASES.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="the agreed cases are not here"))]
    listed = json.loads(CASES.read_text(encoding="utf-8"))["cases"]
    return [pytest.param(case, id=case["name"]) for case in listed]


def array(tensor: dict[str, Any]) -> np.ndarray[Any, Any]:
    def numbers(value: Any) -> Any:
        if isinstance(value, list):
            return [numbers(item) for item in value]
        return float(value) if isinstance(value, str) else value

    data = numbers(tensor["data"])
    if tensor["dtype"].startswith("complex"):
        data = [complex(*parts) for parts in data]
    values = np.array(data, tensor["dtype"])
    return values.reshape(tensor.get("shape", values.shape))


@pytest.mark.parametrize("case", cases())
def test_gives_the_agreed_verdict(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("expected", "actual"):
        arrays = {name: array(tensor) for name, tensor in case[side].items()}
        np.savez(tmp_path / side, **arrays)  # type: ignore[arg-type]
    options = case["options"]
    argv = [str(tmp_path / "expected.npz"), str(tmp_path / "actual.npz"), "--json"]
    for name in ("rtol", "atol"):
        if name in options:
            argv += [f"--{name}", str(options[name])]
    if options.get("equal_nan"):
        argv.append("--equal-nan")
    code = main(["compare", *argv])
    assert json.loads(capsys.readouterr().out)["status"] == case["verdict"]
    assert code == EXIT_CODES[case["verdict"]]
