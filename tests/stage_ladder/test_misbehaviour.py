"""Layers that crash, hang, leave, shout or roll the dice: the run survives and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tipcheck.backends import isolation
from tipcheck.backends.server import link as link_module
from tipcheck.backends.server.link import StageLink
from tipcheck.cli.main import main

pytestmark = pytest.mark.paddle

STAGES = ["--stages", "eager,executor,inference", "--kinds", "normal", "--no-state"]


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        ("segfault", "eager died on SIGSEGV, while running normal"),
        ("leave", "eager gives no answer to any input: it called sys.exit(3)"),
        ("vanish", "eager ended without an answer, while running normal"),
    ],
)
def test_a_layer_that_dies(
    layer: str, told: str, layers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", f"{layers}:{layer}", *STAGES]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert told in shown
    assert "CRASH the layer cannot be exported" in shown


def test_a_layer_that_hangs(layers: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", f"{layers}:hang", *STAGES, "--time-limit", "2"]) == 1
    assert "ran out of time (after 2 s)" in " ".join(capsys.readouterr().out.split())


def test_a_layer_that_shouts_or_rolls_the_dice(
    layers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", f"{layers}:shout", *STAGES]) == 0
    shown = capsys.readouterr().out
    assert "it prints 60 MB" in shown
    assert "xxxx" not in shown
    assert main(["verify", f"{layers}:dice", *STAGES]) == 0
    assert "changes the global random state of numpy" in capsys.readouterr().out


def test_jobs_without_a_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds for a GPU do not survive a fork; there, every job starts afresh."""
    monkeypatch.setenv("TIPCHECK_NO_FORK", "1")
    with StageLink(tmp_path) as link:
        assert link.build["fork"] is False
        end = link.run({"do": "companion"}, 60)
        assert Path(end.answer("model")).is_file()
        assert link.run({"do": "companion"}, 0.2).died == "ran out of time (after 0.2 s)"


def test_children_on_an_old_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ``pidfd_open`` (before Linux 5.3) the server looks for itself who has ended."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os\n"
        "def old(pid, flags=0): raise OSError(38, 'Function not implemented')\n"
        "os.pidfd_open = old\n"
    )
    search = {"PYTHONPATH": f"{tmp_path}:{isolation.SEARCH_PATH['PYTHONPATH']}"}
    monkeypatch.setattr(link_module, "SEARCH_PATH", search)
    with StageLink(tmp_path) as link:
        assert link.run({"do": "companion"}, 60).answer("done")
        assert link.run({"do": "nothing known"}, 60).died.startswith("exited with code 1")


def test_a_server_that_is_killed_is_replaced(tmp_path: Path) -> None:
    with StageLink(tmp_path) as link:
        server = link._server
        assert server is not None
        server._process.kill()
        end = link.run({"do": "companion"}, 60)
        if end.died:
            assert "was lost" in end.died
            end = link.run({"do": "companion"}, 60)
        assert end.answer("done")
