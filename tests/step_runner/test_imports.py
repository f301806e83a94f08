from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tipcheck.step_runner.imports import ImportWalker, read_imports

if TYPE_CHECKING:
    from pathlib import Path


class Repo:
    def __init__(self, root: Path) -> None:
        self.root = root

    def add(self, name: str, text: str = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def reach(self, *scripts: str, code: str = "", search: tuple[str, ...] = ()) -> list[str]:
        walker = ImportWalker(self.root, [self.root / "out"])
        files = walker.reachable(
            [self.root / script for script in scripts],
            code=code,
            search=[self.root / folder for folder in search],
        )
        return [str(file.relative_to(self.root)) for file in files]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


def test_modules_packages_and_submodules(repo: Repo) -> None:
    repo.add("train.py", "import net, os, numpy\nfrom data.loader import load\nimport a.b.c")
    repo.add("net.py", "from layers import conv")
    repo.add("layers/__init__.py")
    repo.add("layers/conv.py", "from . import act\nfrom .deep.x import y\nfrom .. import net")
    repo.add("layers/act.py")
    repo.add("layers/deep/x.py")
    repo.add("data/loader.py")
    repo.add("data/unused.py")
    repo.add("a/__init__.py")
    repo.add("a/b/__init__.py")
    repo.add("a/b/c.py")
    assert repo.reach("train.py") == [
        "a/__init__.py", "a/b/__init__.py", "a/b/c.py", "data/loader.py", "layers/__init__.py",
        "layers/act.py", "layers/conv.py", "layers/deep/x.py", "net.py", "train.py",
    ]  # fmt: skip


def test_a_script_in_a_subfolder_finds_what_is_above_and_beside_it(repo: Repo) -> None:
    repo.add("tools/train.py", "import beside\nimport ppcls.engine")
    repo.add("tools/beside.py")
    repo.add("ppcls/__init__.py")
    repo.add("ppcls/engine.py")
    assert repo.reach("tools/train.py") == [
        "ppcls/__init__.py", "ppcls/engine.py", "tools/beside.py", "tools/train.py",
    ]  # fmt: skip


def test_a_folder_put_on_the_path_at_run_time_is_searched_too(repo: Repo) -> None:
    repo.add("train.py", "import sys; sys.path.insert(0, 'x/y')\nimport hidden.part")
    repo.add("x/y/hidden/part.py")
    repo.add("out/hidden/part.py")
    repo.add(".git/hidden/part.py")
    repo.add("venv/pyvenv.cfg")
    repo.add("venv/hidden/part.py")
    assert repo.reach("train.py") == ["train.py", "x/y/hidden/part.py"]


def test_imports_inside_functions_and_circles(repo: Repo) -> None:
    repo.add("a.py", "def f():\n    import b")
    repo.add("b.py", "try:\n    import a\nexcept ImportError:\n    import nothing")
    assert repo.reach("a.py") == ["a.py", "b.py"]


def test_names_computed_at_run_time_mean_every_file(repo: Repo) -> None:
    repo.add("a.py", "import b")
    repo.add("b.py", "import importlib\nimportlib.import_module(name)")
    repo.add("far/away.py")
    repo.add("out/c.py")
    assert repo.reach("a.py") == ["a.py", "b.py", "far/away.py"]
    assert repo.reach(code="__import__(name)") == ["a.py", "b.py", "far/away.py"]


def test_code_given_on_the_command_line(repo: Repo) -> None:
    repo.add("lib/a.py")
    repo.add("lib/b.py")
    assert repo.reach(code="from lib import a", search=(".",)) == ["lib/a.py"]


def test_a_module_to_run(repo: Repo) -> None:
    repo.add("pkg/__init__.py")
    repo.add("pkg/__main__.py")
    repo.add("pkg/tool.py")
    walker = ImportWalker(repo.root)
    assert walker.find_module("pkg", []) == [
        repo.root / "pkg/__init__.py", repo.root / "pkg/__init__.py", repo.root / "pkg/__main__.py",
    ]  # fmt: skip
    assert repo.root / "pkg/tool.py" in walker.find_module("pkg.tool", [])
    assert walker.find_module("paddle.distributed.launch", []) == []


def test_what_is_no_python_of_this_version_may_import_anything() -> None:
    assert read_imports("print 'old'") == ((), True)
    assert read_imports("x = '\\d'\nf()()")[1] is False


def test_a_changed_file_is_read_again(repo: Repo) -> None:
    repo.add("b.py")
    script = repo.add("a.py", "pass")
    walker = ImportWalker(repo.root)
    assert walker.reachable([script]) == [script]
    script.write_text("import b  # longer")
    assert walker.reachable([script]) == [script, repo.root / "b.py"]


def test_missing_scripts_and_files_outside_are_left_out(repo: Repo, tmp_path: Path) -> None:
    inner = Repo(tmp_path / "inner")
    repo.add("outside.py")
    inner.add("a.py", "import outside\nfrom .. import outside")
    assert inner.reach("a.py", "gone.py", search=("..",)) == ["a.py"]


def test_a_relative_import_of_the_package_itself(repo: Repo) -> None:
    repo.add("p/__init__.py")
    repo.add("p/a.py", "from . import NAME")
    assert repo.reach("p/a.py") == ["p/__init__.py", "p/a.py"]


def test_a_file_that_disappears_while_it_is_read(repo: Repo) -> None:
    walker = ImportWalker(repo.root)
    assert walker._read(repo.root / "gone.py").modules == ()
