from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tipcheck.step_runner.fingerprint import OWN, Fingerprint, Fingerprinter, what_changed

if TYPE_CHECKING:
    from collections.abc import Callable


class Repo:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.argv: list[str] = [sys.executable, "train.py", "--data-path=lite_data", "-c", "a.yml"]
        self.env = {"PATH": os.environ["PATH"], "HOME": "/x", "FLAGS_a": "1"}
        self.own = ["MINE"]
        self.add("config.txt", "===\n--img:images/0.jpg\n")
        self.add("train.py", "import net")
        self.add("net.py", "x = 1")
        self.add("a.yml", "_BASE_: ['./base.yml']\ndata: data_set/train")
        self.add("base.yml", "x: 1")
        self.add("data_set/train/0.txt", "0")
        self.add("lite_data/1.jpg", "1")
        self.add("images/0.jpg", "2")
        self.add("logs/old.log")

    def add(self, name: str, text: str = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def take(self, maker: Fingerprinter | None = None) -> Fingerprint:
        maker = maker or self.maker()
        return maker.take(self.argv, self.env, self.own, self.root, [self.root / "config.txt"])

    def maker(self) -> Fingerprinter:
        return Fingerprinter(self.root, [self.root / "logs"])


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


def names(part: object) -> set[str]:
    assert isinstance(part, dict)
    return {Path(name).name for name in part}


def test_what_a_step_depends_on(repo: Repo) -> None:
    print_ = repo.take()
    assert names(print_.code) == {"train.py", "net.py"}
    assert names(print_.data) == {"lite_data", "a.yml", "base.yml", "train", "0.jpg"}
    assert names(print_.config) == {"config.txt"}
    assert set(print_.environment) == {"FLAGS_a", "MINE"}
    assert print_.program["python"].startswith(sys.version.split()[0])
    assert "pytest" in print_.program
    assert what_changed(print_.parts(), repo.take()) == ""


def change_arguments(repo: Repo) -> None:
    repo.argv.append("--epochs=2")


def change_environment(repo: Repo) -> None:
    repo.env["FLAGS_a"] = "2"


def change_own_environment(repo: Repo) -> None:
    repo.env["MINE"] = "2"


def change_program(repo: Repo) -> None:
    link = repo.root / "python3"
    link.symlink_to("/bin/false")
    repo.argv[0] = str(link)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_arguments, "its arguments changed"),
        (change_environment, "environment changed: FLAGS_a"),
        (change_own_environment, "environment changed: MINE"),
        (lambda repo: repo.add("config.txt", "other"), "config changed: config.txt"),
        (lambda repo: repo.add("net.py", "x = 2"), "code changed: net.py"),
        (lambda repo: repo.add("base.yml", "x: 2"), "base.yml"),
        (lambda repo: repo.add("lite_data/2.jpg", "new"), "lite_data"),
        (lambda repo: repo.add("data_set/train/0.txt", "other"), "data_set/train"),
        (lambda repo: shutil.rmtree(repo.root / "lite_data"), "lite_data"),
        (lambda repo: repo.add("images/0.jpg", "other"), "images/0.jpg"),
        (lambda repo: repo.add("logs/old.log", "the chain's own"), ""),
        (lambda repo: repo.add("lite_data/__pycache__/x.pyc", ""), ""),
        (lambda repo: repo.env.update(HOME="/y"), ""),
    ],
)
def test_what_changed_is_named(repo: Repo, change: Callable[[Repo], object], words: str) -> None:
    before = repo.take().parts()
    times = {path: path.stat() for path in [repo.root / "lite_data"]}
    change(repo)
    if not words and (repo.root / "lite_data").exists():
        status = times[repo.root / "lite_data"]
        os.utime(repo.root / "lite_data", ns=(status.st_atime_ns, status.st_mtime_ns))
    told = what_changed(before, repo.take())
    assert told.endswith(words) if words else told == ""


def test_another_interpreter_is_another_program(repo: Repo) -> None:
    before = repo.take().parts()
    change_program(repo)
    assert what_changed({**before, "arguments": repo.take().arguments}, repo.take()).startswith(
        "installed versions changed: "
    )


def test_many_changes_are_counted(repo: Repo) -> None:
    before = repo.take().parts()
    for number in range(5):
        repo.env[f"FLAGS_{number}"] = "x"
    told = what_changed(before, repo.take())
    assert told == "environment changed: FLAGS_0, FLAGS_1, FLAGS_2 and 2 more"


def test_what_the_step_writes_is_no_input_but_has_to_stay(repo: Repo) -> None:
    repo.argv += ["--output=new", "--also=lite_data"]
    maker = repo.maker()
    before = repo.take(maker).data
    repo.add("new/weights", "w")
    repo.add("lite_data/cache", "c")
    config = repo.root / "config.txt"
    data = maker.settle(before, repo.argv, repo.root, config, time.time())
    assert data[str(repo.root / "new")] == OWN
    assert data[str(repo.root / "lite_data")] == OWN
    assert str(repo.root / "images/0.jpg") in data
    stored = {**repo.take().parts(), "data": data}
    repo.add("new/weights", "other")
    assert what_changed(stored, repo.take()) == ""
    shutil.rmtree(repo.root / "new")
    assert what_changed(stored, repo.take()) == f"data changed: {repo.root / 'new'}"


def test_what_changed_after_the_step_was_changed_by_someone_else(repo: Repo) -> None:
    before = repo.take().data
    path = repo.add("lite_data/1.jpg", "edited later")
    config = repo.root / "config.txt"
    data = repo.maker().settle(before, repo.argv, repo.root, config, time.time() - 60)
    assert data == before
    assert path.exists()


def test_the_repo_itself_and_devices_are_no_data(repo: Repo) -> None:
    repo.argv = ["tool", ".", "./", "/", str(repo.root), str(repo.root.parent), "/dev/null", "--x="]
    repo.add("config.txt", "no paths")
    assert repo.take().data == {}
    repo.argv = ["tool", "logs", "logs/old.log"]
    assert repo.take().data == {}


def test_a_large_folder_is_walked_once(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tipcheck.step_runner.fingerprint._LARGE_FOLDER", 3)
    for number in range(5):
        repo.add(f"lite_data/{number}.png")
    maker = repo.maker()
    before = repo.take(maker).parts()
    repo.add("lite_data/new.png")
    assert what_changed(before, repo.take(maker)) == ""
    assert what_changed(before, repo.take()) != ""


def test_links_in_data_are_followed_once_and_broken_ones_left_out(repo: Repo) -> None:
    far = repo.root.parent / f"{repo.root.name}-far"
    far.mkdir()
    (far / "x").write_text("1")
    (repo.root / "lite_data/link").symlink_to(far)
    (far / "loop").symlink_to(far)
    (repo.root / "lite_data/broken").symlink_to("/no/where")
    before = repo.take().parts()
    assert what_changed(before, repo.take()) == ""
    (far / "x").write_text("22")
    assert "lite_data" in what_changed(before, repo.take())


def test_large_files_count_by_size_and_time(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tipcheck.step_runner.fingerprint._CONTENT_UP_TO", 10)
    path = repo.add("weights.bin", "x" * 20)
    repo.argv.append("weights.bin")
    before = repo.take().parts()
    os.utime(path, (1, 1))
    assert "weights.bin" in what_changed(before, repo.take())


def test_modules_and_code_on_the_command_line(repo: Repo) -> None:
    repo.argv = [sys.executable, "-m", "net"]
    assert names(repo.take().code) == {"net.py"}
    repo.argv = [sys.executable, "-c", "import net"]
    assert names(repo.take().code) == {"net.py"}
    repo.argv = ["true"]
    assert repo.take().code == {}


def test_a_missing_config_and_a_missing_program(repo: Repo) -> None:
    (repo.root / "config.txt").unlink()
    repo.argv[0] = "python9.9"
    print_ = repo.take()
    assert print_.config == {"config.txt": "missing"}
    assert print_.program == {"program": "python9.9", "program's content": "missing"}


def test_paths_that_vanish_while_they_are_looked_at(repo: Repo) -> None:
    assert repo.maker()._state(str(repo.root / "gone")) == ("missing", 0.0)
    assert repo.maker()._mentioned(str(repo.root / "gone")) == []


def test_variables_that_the_code_or_the_command_names(repo: Repo) -> None:
    repo.add("net.py", 'import os\nx = os.environ.get("TUNING", "")')
    repo.argv.append("$LEVEL ${DEPTH}x $PWD")
    before = repo.take().parts()
    repo.env["PWD"] = "/elsewhere"  # noqa: S105 - a folder
    assert what_changed(before, repo.take()) == ""
    for name in ("TUNING", "LEVEL", "DEPTH"):
        repo.env[name] = "1"
        assert what_changed(before, repo.take()) == f"environment changed: {name}"
        del repo.env[name]
