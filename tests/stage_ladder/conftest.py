"""What the tests of verify share: layers that workers can find, and one export of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tipcheck.backends.server.link import StageLink

HERE = Path(__file__).parent


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> str:
    """Stand where workers find ``layers:NAME``."""
    monkeypatch.chdir(HERE)
    return "layers"


@pytest.fixture(scope="session")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plain layer, exported."""
    folder = tmp_path_factory.mktemp("export")
    with StageLink(folder) as link:
        end = link.run({"do": "export", "source": "layers:plain", "path": [str(HERE)]}, 60)
    found = end.answer("model")
    assert found, end
    return Path(found)


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs for it, in a file."""
    path = tmp_path_factory.mktemp("rows") / "rows.npz"
    np.savez(path, x=np.random.default_rng(3).standard_normal((3, 8)).astype(np.float32))
    return path
