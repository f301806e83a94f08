"""The command as a whole: help, exit codes, errors on one line, speed of the start."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tipcheck
from tipcheck.cli import commands, main
from tipcheck.errors import ToolError, UsageError

IMPORTED = "import sys; print(' '.join(sorted(sys.modules)))"


def modules_after(*argv: str) -> set[str]:
    program = f"from tipcheck.cli.main import main; main({list(argv)!r}); {IMPORTED}"
    # Measuring coverage in the child would import half the library by itself.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env
    )
    return set(ran.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("argv", [["--help"], ["--version"], []])
def test_help_imports_nothing_heavy(argv: list[str]) -> None:
    heavy = {"numpy", "paddle", "rich", "msgspec", "shtab", "argparse", "json", "typing"}
    assert not modules_after(*argv) & heavy


@pytest.mark.parametrize("command", [command.name for command in commands.COMMANDS])
def test_help_of_a_command_imports_no_framework(command: str) -> None:
    assert not modules_after(command, "--help") & {"numpy", "paddle", "onnxruntime", "openvino"}


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--help"]) == 0
    listed = capsys.readouterr().out
    for command in commands.COMMANDS:
        assert f"  {command.name} " in listed
        assert command.summary in listed


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands.COMMANDS:
        assert main.main([command.name, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"usage: tipcheck {command.name} ")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out == f"tipcheck {tipcheck.__version__}\n"


@pytest.mark.parametrize(
    ("word", "hint"), [("comapre", "did you mean `tipcheck compare`?"), ("xyz", "--help")]
)
def test_unknown_command(word: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([word]) == 2
    assert hint in capsys.readouterr().err


def test_wrong_usage_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["compare", "--no-such-option"]) == 2
    assert "--no-such-option" in capsys.readouterr().err


@pytest.fixture
def run_as(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], int]:
    """Run a command that ends in an exception."""

    def run(error: BaseException) -> int:
        module = ModuleType("tipcheck_failing_command")

        def fail(_: object) -> int:
            raise error

        module.configure = lambda _: None  # type: ignore[attr-defined]
        module.run = fail  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        failing = commands.Command("fail", module.__name__, "fails")
        monkeypatch.setattr(main, "COMMANDS", (failing,))
        return main.main(["fail"])

    return run


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("is bad", where="a.txt:3", hint="mend it"), 2, "a.txt:3: is bad; mend it"),
        (ToolError("the disk\nis full"), 3, "the disk is full"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (SystemExit(2), 2, ""),
        (SystemExit("text"), 2, ""),
    ],
)
def test_errors_become_one_line_and_an_exit_code(
    error: BaseException,
    code: int,
    said: str,
    run_as: Callable[[BaseException], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_as(error) == code
    assert capsys.readouterr().err == (f"tipcheck: error: {said}\n" if said else "")


def test_a_bug_is_called_one_and_keeps_its_traceback(
    run_as: Callable[[BaseException], int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: object,
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert run_as(ZeroDivisionError("division\nby zero")) == 3
    line = capsys.readouterr().err
    assert line.startswith("tipcheck: error: internal error: ZeroDivisionError: division by zero;")
    with open(line.split()[-1], encoding="utf-8") as file:  # noqa: PTH123
        assert "Traceback" in file.read()


def test_a_bug_on_a_full_disk_is_still_reported(
    run_as: Callable[[BaseException], int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    assert run_as(ZeroDivisionError("oh")) == 3
    assert "ZeroDivisionError: oh; please report it" in capsys.readouterr().err


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
    )


def test_a_reader_that_leaves_early_is_no_error() -> None:
    ran = shell(f"{sys.executable} -m tipcheck completion bash | head -1")
    assert ran.stderr == ""
    assert ran.returncode == 0


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("option", ["", "--json"])
def test_the_exit_code_is_the_verdict_also_when_nobody_reads_on(
    unbuffered: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    for name, value in (("a", 1.0), ("b", 2.0)):
        np.savez(tmp_path / f"{name}.npz", y=np.full(3, value))
    for other, code in (("a", 0), ("b", 1)):
        files = f"{tmp_path}/a.npz {tmp_path}/{other}.npz"
        ran = shell(f"{sys.executable} -m tipcheck compare {files} {option} | true")
        assert (ran.stdout, ran.stderr, ran.returncode) == ("", "", code)
    ran = shell(f"{sys.executable} -m tipcheck compare {tmp_path}/a.npz nowhere 2>&1 | true")
    assert (ran.stderr, ran.returncode) == ("", 2)
    assert shell(f"{sys.executable} -m tipcheck --help >&-").returncode == 0


def test_output_that_does_not_fit_on_the_disk_is_an_error() -> None:
    ran = shell(f"{sys.executable} -m tipcheck --help > /dev/full")
    assert ran.returncode == 3
    assert ran.stderr == "tipcheck: error: cannot write the output (No space left on device)\n"


def test_the_module_is_the_command() -> None:
    ran = shell(f"{sys.executable} -m tipcheck --version")
    assert ran.stdout == f"tipcheck {tipcheck.__version__}\n"


@pytest.mark.parametrize("shell_name", ["bash", "zsh"])
def test_completion_knows_commands_and_options(
    shell_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["completion", shell_name]) == 0
    script = capsys.readouterr().out
    for command in commands.COMMANDS:
        assert command.name in script
    assert "--equal-nan" in script


def test_bash_accepts_and_uses_the_completion_script() -> None:
    program = (
        f'eval "$({sys.executable} -m tipcheck completion bash)"; '
        "COMP_WORDS=(tipcheck comp); COMP_CWORD=1; _shtab_tipcheck; echo ${COMPREPLY[@]}"
    )
    assert shell(program).stdout.split() == ["compare", "completion"]


@pytest.mark.parametrize(
    "argv", [["compare", "--rtol", "x"], ["doctor", "extra"], ["completion"], ["plan"]]
)
def test_wrong_usage_is_told_on_one_line(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(argv) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert line.startswith("tipcheck: error: ")
    assert line.endswith(f"; type `tipcheck {argv[0]} --help`")


def test_paths_are_completed_as_paths(tmp_path: Path) -> None:
    (tmp_path / "outputs.npz").touch()
    ran = shell(
        f"cd {tmp_path}; source <({sys.executable} -m tipcheck completion bash); "
        "COMP_WORDS=(tipcheck compare out); COMP_CWORD=2; _shtab_tipcheck; echo $COMPREPLY"
    )
    assert ran.stdout == "outputs.npz\n"


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_time_limit_that_is_none(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["doctor", f"--time-limit={seconds}"]) == 2
    assert "--time-limit is" in capsys.readouterr().err
