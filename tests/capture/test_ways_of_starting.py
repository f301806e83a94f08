"""However a command starts its Python: a save is noticed, and nothing else is to be seen."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.capture.conftest import Watched

SAVE = "import paddle; paddle.jit.save('layer', 'out')"
LOOKS = """
import os, sys, json
print(json.dumps(sys.path), sys.argv, sorted(sys.meta_path, key=str) != [], __name__)
print(os.environ.get("PYTHONPATH"), "TIPCHECK_CAPTURE" in os.environ)
print("sitecustomize" in sys.modules, getattr(sys.modules.get("sitecustomize"), "MINE", None))
"""


def check(shell: Watched, *argv: str, saves: int = 1) -> None:
    """Run a command both ways; expect the same to be seen, and so many saves."""
    plain = shell.plain(*argv)
    before = {file.name: file.read_bytes() for file in shell.here.iterdir() if file.is_file()}
    watched = shell.watched(*argv)
    after = {file.name: file.read_bytes() for file in shell.here.iterdir() if file.is_file()}
    assert watched.stdout == plain.stdout
    assert watched.stderr == plain.stderr
    assert watched.returncode == plain.returncode
    assert after == before
    assert len(shell.saved()) == saves, watched.stderr


def test_a_script_sees_nothing_of_it(shell: Watched) -> None:
    (shell.here / "look.py").write_text(LOOKS + SAVE, encoding="utf-8")
    check(shell, "python", "look.py", "an argument", "--", "-c")


def test_code_on_the_command_line(shell: Watched) -> None:
    check(shell, sys.executable, "-c", LOOKS + SAVE)


def test_a_module_without_byte_code(shell: Watched) -> None:
    package = shell.here / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "__main__.py").write_text(LOOKS + SAVE, encoding="utf-8")
    check(shell, "python", "-B", "-m", "pkg")


def test_every_way_to_import_it(shell: Watched) -> None:
    code = (
        "from paddle.jit import save as one; import paddle.jit.api as api; from paddle import jit; "
        "one('a', '1'); api.save('b', '2'); jit.save('c', '3')"
    )
    check(shell, "python", "-c", code, saves=3)
    assert shell.saved() == ["1", "2", "3"]


def test_a_shell_script_that_starts_python(shell: Watched) -> None:
    code = SAVE.replace("out", "/dev/null")
    script = f'export PYTHONPATH="$PYTHONPATH"\ncd /tmp\npython -c "{code}" | cat\n'
    (shell.here / "run.sh").write_text(script, encoding="utf-8")
    shell.watched("bash", "run.sh")
    assert shell.saved() == ["/dev/null"]


def test_a_process_with_another_environment(shell: Watched) -> None:
    code = (
        "import os, subprocess, sys\n"
        f"save = [sys.executable, '-c', {SAVE!r}]\n"
        "mine = dict(os.environ)\n"
        "subprocess.run(save, env=mine, check=True)\n"
        "subprocess.run(save, env=os.environ, check=True)\n"
        "os.environ['PYTHONPATH'] = os.environ['PYTHONPATH'] + ':/nowhere'\n"
        "subprocess.run(save, check=True)\n"
        "print(os.environ['PYTHONPATH'], 'TIPCHECK_CAPTURE' in os.environ, mine == {**os.environ, "
        "'PYTHONPATH': mine['PYTHONPATH']})\n"
    )
    (shell.here / "start.py").write_text(code, encoding="utf-8")
    check(shell, "python", "start.py", saves=3)


def test_processes_of_multiprocessing(shell: Watched) -> None:
    code = (
        "import multiprocessing, os\n"
        "def work(number):\n"
        "    import paddle\n"
        "    paddle.jit.save('layer', f'out{number}')\n"
        "if __name__ == '__main__':\n"
        "    for number, way in enumerate(('fork', 'spawn')):\n"
        "        process = multiprocessing.get_context(way).Process(target=work, args=(number,))\n"
        "        process.start(); process.join(); print(process.exitcode)\n"
    )
    (shell.here / "start.py").write_text(code, encoding="utf-8")
    check(shell, "python", "start.py", saves=2)


def test_no_child_that_the_command_did_not_start(shell: Watched) -> None:
    code = (
        "import os, signal\n"
        "signal.signal(signal.SIGCHLD, lambda *_: print('a child ended'))\n"
        f"{SAVE}\n"
        "try:\n    print(os.wait())\nexcept ChildProcessError:\n    print('none')\n"
    )
    check(shell, "python", "-c", code)


def test_the_environments_own_sitecustomize_still_runs(shell: Watched, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    text = "import sys\nMINE = 'theirs'\nprint('hello from', __name__, file=sys.stderr)\n"
    (own / "sitecustomize.py").write_text(text, encoding="utf-8")
    shell.env["PYTHONPATH"] += f":{own}"
    check(shell, "python", "-c", LOOKS + SAVE)


def test_a_broken_sitecustomize_is_told_as_ever(shell: Watched, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import no_such_module\n", encoding="utf-8")
    shell.env["PYTHONPATH"] += f":{own}"
    check(shell, "python", "-c", SAVE)


def test_without_a_path_before(shell: Watched, fake_paddle: Path) -> None:
    del shell.env["PYTHONPATH"]
    check(
        shell, "python", "-c", f"import sys; sys.path.append({str(fake_paddle)!r}); {LOOKS}{SAVE}"
    )


def test_a_save_that_fails_looks_as_ever(shell: Watched) -> None:
    check(shell, "python", "-c", "import paddle\npaddle.jit.save('broken', 'out')")


def test_output_that_is_held_back_comes_once_and_in_order(shell: Watched) -> None:
    code = f"import sys; print('held', end=''); {SAVE}; print('back'); sys.stderr.write('x')"
    (shell.here / "both.sh").write_text(f'python -c "{code}" 2>&1\n', encoding="utf-8")
    check(shell, "bash", "both.sh")


def test_an_isolated_interpreter_shows_nothing(shell: Watched, fake_paddle: Path) -> None:
    code = f"import sys; sys.path.append({str(fake_paddle)!r}); {SAVE}"
    check(shell, "python", "-I", "-c", code, saves=0)


def test_files_that_go_are_kept(shell: Watched) -> None:
    code = (
        "import os, paddle, shutil\n"
        "os.mkdir('a'); paddle.jit.save('first', 'a/m'); shutil.rmtree('a')\n"
        "paddle.jit.save('second', 'm'); paddle.jit.save('third', 'm'); os.remove('m.json')\n"
    )
    check(shell, "python", "-c", code, saves=3)
    kept = sorted(shell.captures.glob("*/exported/m.json"))
    assert [file.read_text("utf-8") for file in kept] == ["first", "second", "third"]
