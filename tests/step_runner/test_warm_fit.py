"""Which jobs are forked, which get a process of their own, and why."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.step_runner.conftest import Jobs
from tipcheck.step_runner.warm_fit import Chooser, Fit, Kind, Sets, sets_variables, shadows
from tipcheck.step_runner.warm_names import matters


@pytest.fixture
def chosen(jobs: Jobs) -> Jobs:
    (jobs.folder / "script.py").write_text("print(1)\n")
    return jobs


def why(jobs: Jobs, *argv: str, **env: str) -> str:
    job = jobs.make(*argv, env={"PATH": os.environ["PATH"], **env})
    fit = Chooser().choose(job)
    return fit if isinstance(fit, str) else ""


def kind(jobs: Jobs, *argv: str, **env: str) -> Kind:
    fit = Chooser().choose(jobs.make(*argv, env={"PATH": os.environ["PATH"], **env}))
    assert isinstance(fit, Fit)
    return fit.kind


def test_what_is_forked(chosen: Jobs) -> None:
    for program in ("python3", sys.executable):
        for options in ((), ("-u",)):
            assert not why(chosen, program, *options, "script.py", "-x", "$(y)")
    assert not why(chosen, "python3", str(chosen.folder / "script.py"))


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["python3"], "it is no Python script"),
        (["bash", "script.py"], "it is no Python script"),
        (["python3-config", "script.py"], "it is no Python script"),
        (["python3", "-u"], "it is no Python script"),
        (["python3", "-m", "paddle.distributed.launch", "script.py"], "more than a script"),
        (["python3", "-c", "pass"], "more than a script"),
        (["python3", "-B", "script.py"], "more than a script"),
        (["python3", "folder"], "more than a script"),
        (["python3", "missing.py"], "its script is not there"),
        (["python9.9", "script.py"], "its interpreter is not found"),
        (["./python", "script.py"], "its interpreter is not found"),
        (["python3", "script.py", "a\0b"], "may not be one that the system accepts"),
        (["python3", "script.py", "x" * 200_000], "may not be one that the system accepts"),
    ],
)
def test_what_is_not(chosen: Jobs, argv: list[str], reason: str) -> None:
    assert reason in why(chosen, *argv)


def test_an_environment_that_changes_the_interpreter(chosen: Jobs) -> None:
    assert "begins or ends" in why(chosen, "python3", "script.py", PYTHONSAFEPATH="1")
    assert "begins or ends" in why(chosen, "python3", "script.py", PYTHONWARNINGS="error")
    assert not why(chosen, "python3", "script.py", PYTHONUNBUFFERED="1")


def test_a_script_that_cannot_be_read_has_a_process_of_its_own(chosen: Jobs) -> None:
    (chosen.folder / "python3").symlink_to("nowhere")
    assert "not found" in why(chosen, "./python3", "script.py")
    assert "not found" in why(chosen, "python3", "script.py", PATH="relative:/usr/bin")


def test_what_is_read_at_the_start_makes_another_kind(chosen: Jobs) -> None:
    plain = kind(chosen, sys.executable, "script.py", MINE="1")
    assert kind(chosen, sys.executable, "script.py", MINE="2") == plain
    for name in ("FLAGS_x", "OMP_NUM_THREADS", "LD_PRELOAD", "PYTHONHASHSEED", "HOME"):
        assert kind(chosen, sys.executable, "script.py", **{name: "1"}) != plain
        assert matters(name)
    assert kind(chosen, sys.executable, "-u", "script.py") != plain


def test_a_folder_matters_where_a_name_is_relative(chosen: Jobs) -> None:
    assert not kind(chosen, sys.executable, "script.py", PYTHONPATH="/a:/b").folder
    assert kind(chosen, sys.executable, "script.py", PYTHONPATH="a").folder == str(chosen.folder)
    assert kind(chosen, sys.executable, "script.py", PYTHONPATH=":/a").folder
    wrapper = chosen.folder / "python3"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    assert kind(chosen, str(wrapper), "script.py").folder
    assert kind(chosen, "./python3", "script.py").program == f"{chosen.folder}/./python3"


@pytest.mark.parametrize(
    "text",
    [
        "os.environ['FLAGS_allocator_strategy'] = 'auto_growth'",
        'os.environ["OMP_NUM_THREADS"]="1"',
        "environ.setdefault('CUDA_VISIBLE_DEVICES', '0')",
        "os.environ.update(flags)",
        "os.environ[name] = value",
        "os.environ |= more",
        "os.putenv('X', 'y')",
        "del os.environ['OMP_NUM_THREADS']",
        "os.environ.pop('FLAGS_x', None)",
    ],
)
def test_code_that_sets_variables_of_frameworks(chosen: Jobs, text: str) -> None:
    assert sets_variables(f"import os\n{text}\nimport paddle\n") is Sets.ALWAYS
    (chosen.folder / "setup_env.py").write_text(text)
    assert not why(chosen, "python3", "script.py")
    (chosen.folder / "script.py").write_text("import setup_env\n")
    assert why(chosen, "python3", "script.py").startswith("setup_env.py sets variables")


@pytest.mark.parametrize(
    "text",
    [
        "os.environ['MY_MODE'] = 'x'",
        "if os.environ['FLAGS_x'] == '1': pass",
        "os.environ.get('FLAGS_x')",
        "os.environ.setdefault('MASTER', 'here')",
        "paddle.set_flags({'FLAGS_x': 1})",
    ],
)
def test_code_that_does_not(text: str) -> None:
    assert sets_variables(text) is Sets.NEVER


def test_a_script_is_read_again_when_it_changes(chosen: Jobs) -> None:
    chooser = Chooser()
    job = chosen.make("python3", "script.py")
    assert isinstance(chooser.choose(job), Fit)
    assert isinstance(chooser.choose(job), Fit)
    (chosen.folder / "script.py").write_text("import os\nos.environ['FLAGS_x'] = '1'\n")
    assert isinstance(chooser.choose(job), str)


def test_modules_next_to_a_script(tmp_path: Path) -> None:
    script = tmp_path / "a" / "script.py"
    script.parent.mkdir()
    script.write_text("")
    loaded = {"numpy", "json", "six", "data"}
    (script.parent / "data").mkdir()
    (script.parent / "json.txt").touch()
    assert not shadows(script, loaded)
    (script.parent / "six.py").touch()
    assert shadows(script, loaded) == "six.py"
    link = tmp_path / "link.py"
    link.symlink_to(script)
    assert shadows(link, loaded) == "six.py", "the folder is that of the file itself"
    (script.parent / "six.py").rename(script.parent / "six.cpython-311.so")
    assert shadows(script, loaded) == "six.cpython-311.so"
    (script.parent / "six.cpython-311.so").unlink()
    (script.parent / "data" / "__init__.py").touch()
    assert shadows(script, loaded) == "data"
    assert "No such file" in shadows(tmp_path / "gone" / "x.py", loaded)


@pytest.mark.parametrize(
    ("text", "sets"),
    [
        ("import os\nif x:\n    os.environ['FLAGS_a'] = '1'\n", Sets.PERHAPS),
        ("import os\nif x:\n    pass\nelse:\n    os.environ.update(a='1')\n", Sets.PERHAPS),
        ("import os\nif __name__ == '__main__':\n    os.environ['FLAGS_a'] = '1'\n", Sets.ALWAYS),
        ("import os\ndef f():\n    if x:\n        os.environ['FLAGS_a'] = '1'\n", Sets.ALWAYS),
        ("if x:\n    os.environ['FLAGS_a'] = '1'\nos.environ['FLAGS_b'] = '1'\n", Sets.ALWAYS),
        ("if x:\n    os.environ['FLAGS_a'] = '1'\nno python", Sets.ALWAYS),
    ],
)
def test_variables_that_are_set_below_a_condition(text: str, sets: Sets) -> None:
    assert sets_variables(text) is sets
