"""The cases of ``cases.py``, run by worker processes: one for computing, one for saving."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("cases.py")
NAMES = re.findall(r"^def (case_\w+)", CASES.read_text(encoding="utf-8"), re.MULTILINE)
SAVING = [name for name in NAMES if name.startswith("case_save_")]
COMPUTING = [name for name in NAMES if name not in SAVING]


def outcomes(pattern: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, str(CASES), pattern],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="session")
def computed() -> dict[str, str]:
    return outcomes("^case_(?!save_)")


@pytest.fixture(scope="session")
def saved() -> dict[str, str]:
    return outcomes("^case_save_")


@pytest.mark.paddle
@pytest.mark.parametrize("name", COMPUTING)
def test_computing(computed: dict[str, str], name: str) -> None:
    assert computed[name] == "", computed[name]


@pytest.mark.paddle
@pytest.mark.slow
@pytest.mark.parametrize("name", SAVING)
def test_saving(saved: dict[str, str], name: str) -> None:
    assert saved[name] == "", saved[name]


def test_the_contract_is_read_without_paddle() -> None:
    code = (
        "import sys, tipcheck.quant as quant\n"
        "assert quant.QuantScheme().activation_bits == 8\n"
        "assert 'paddle' not in sys.modules\n"
        "try:\n    quant.nothing\nexcept AttributeError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "has no attribute 'nothing'" in done.stdout
