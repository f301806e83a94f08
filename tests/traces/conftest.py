"""Small models, exported once for all tests of traces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXPORTER = Path(__file__).parents[2] / "bench" / "debug_models.py"


def export(folder: Path, *names: str, older: bool = False) -> None:
    flags = {"FLAGS_enable_pir_api": "0"} if older else {}
    subprocess.run(
        [sys.executable, str(EXPORTER), str(folder), *names],
        env={**os.environ, **flags, "PYTHONWARNINGS": "ignore"},
        check=True,
        capture_output=True,
        timeout=600,
    )


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with mobilenet, vit and lstm as ``.json``, and mobilenet as ``.pdmodel``."""
    folder = tmp_path_factory.mktemp("models")
    export(folder, "mobilenet", "vit", "lstm")
    (folder / "older").mkdir()
    export(folder / "older", "mobilenet", older=True)
    return folder
