"""A chain that no profile describes is recorded by its own bash, and nothing real is started."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tipcheck.config_plans.record import record
from tipcheck.errors import ToolError, UsageError

from .configs import put

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")

CONFIG = "====a====\nmodel_name:tiny\npython:python3.7\n"
CHAIN = """\
python=$(sed -n 3p $1 | cut -d: -f2)
mkdir -p test_tipc/output/tiny
export FLAGS_deterministic=True
sleep 600
rm -rf /
pip install -r requirements.txt
IFS='|'
eval "$python tools/train.py --out=$(pwd)/x -o 'a b' > test_tipc/output/log 2>&1"
eval "export CUDA_VISIBLE_DEVICES=0,1"
eval "$python tools/eval.py ''"
timeout -s KILL 5m $python tools/export_model.py
cd deploy
$python infer.py | tee ../test_tipc/output/infer.log
unheard_of --flag
/opt/own/bin/python3 tools/main.py --test-only
/usr/bin/python3 -c 'open("touched", "w")'
"""


def chain(folder: Path, script: str, config: str = CONFIG) -> tuple[Path, Path]:
    path = put(folder, "repo", config)
    (folder / "repo" / "deploy").mkdir(exist_ok=True)
    (folder / "repo" / ".git").mkdir(exist_ok=True)
    (folder / "repo" / "big.py").write_text("raise SystemExit(1)")
    bash = folder / "repo" / "test_tipc" / "chain.sh"
    bash.write_text(script)
    return bash, path


def test_a_chain_becomes_a_plan(tmp_path: Path) -> None:
    script, config = chain(tmp_path, CHAIN)
    before = sorted(tmp_path.rglob("*"))
    plan = record(script, config, "lite", seconds=30)
    assert sorted(tmp_path.rglob("*")) == before
    root = tmp_path / "repo"
    assert [(step.stage, step.argv) for step in plan.steps] == [
        ("setup", ("pip", "install", "-r", "requirements.txt")),
        ("train", ("python3.7", "tools/train.py", f"--out={root}/x", "-o", "a b")),
        ("eval", ("python3.7", "tools/eval.py", "")),
        ("export", ("python3.7", "tools/export_model.py")),
        ("infer", ("python3.7", "infer.py")),
        ("setup", ("unheard_of", "--flag")),
        ("eval", ("/opt/own/bin/python3", "tools/main.py", "--test-only")),
        ("train", ("/usr/bin/python3", "-c", 'open("touched", "w")')),
    ]
    train, evaluation, export, infer = plan.steps[1:5]
    assert train.env == {"FLAGS_deterministic": "True"}
    assert evaluation.env == {"CUDA_VISIBLE_DEVICES": "0,1", "FLAGS_deterministic": "True"}
    assert evaluation.gpus == ("0", "1")
    assert (train.cwd, infer.cwd) == (".", "deploy")
    setup, last_setup = plan.steps[0], plan.steps[5]
    assert infer.needs == (setup.id, train.id, export.id)
    assert last_setup.needs == (setup.id, train.id, evaluation.id, export.id, infer.id)
    assert plan.steps[7].needs == (last_setup.id,)
    assert (plan.profile, plan.model_name, plan.mode) == ("recorded", "tiny", "lite")
    assert len({step.log for step in plan.steps}) == len(plan.steps)


def test_script_and_config_outside_the_repo(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("python:python9\n")
    (tmp_path / "s.sh").write_text("python9 fit.py\n")
    plan = record(tmp_path / "s.sh", tmp_path / "c.txt", "m")
    assert [step.argv for step in plan.steps] == [("python9", "fit.py")]
    put(tmp_path, "repo", CONFIG)
    plan = record(tmp_path / "s.sh", put(tmp_path, "repo", CONFIG), "m")
    assert [step.stage for step in plan.steps] == ["train"]
    assert plan.model_name == "tiny"


def test_a_script_that_starts_nothing_or_does_not_end(tmp_path: Path) -> None:
    script, config = chain(tmp_path, "echo no such model >&2\n")
    with pytest.raises(UsageError, match=r"started nothing.*no such model"):
        record(script, config, "m")
    script.write_text("true\n")
    with pytest.raises(UsageError, match="it said: nothing"):
        record(script, config, "m")
    script.write_text("while true; do :; done\n")
    with pytest.raises(ToolError, match=r"did not end within 0\.2 seconds"):
        record(script, config, "m", seconds=0.2)
    with pytest.raises(UsageError, match="no such script"):
        record(tmp_path / "missing.sh", config, "m")


def test_no_bash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, config = chain(tmp_path, "true\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="no bash"):
        record(script, config, "m")


def test_large_files_are_there_by_name_and_outputs_are_not(tmp_path: Path) -> None:
    text = "[ -f big -a ! -s big ] && python a.py; [ -e output ] || [ -e log/x ] || python b.py\n"
    script, config = chain(tmp_path, text)
    with (tmp_path / "repo" / "big").open("wb") as file:
        file.truncate(2 * 1024 * 1024)
    (tmp_path / "repo" / "nowhere").symlink_to("missing")
    (tmp_path / "repo" / "output").mkdir()
    (tmp_path / "repo" / "log").mkdir()
    (tmp_path / "repo" / "log" / "x").touch()
    assert [step.argv[1] for step in record(script, config, "m").steps] == ["a.py", "b.py"]


def test_a_chain_of_a_repo_without_test_tipc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chain").mkdir()
    (tmp_path / "chain" / "common.sh").write_text('get() { sed -n "s/^$1=//p" "$CFG"; }\n')
    (tmp_path / "chain" / "toy.cfg").write_text("python=python3\nlrs=0.1,0.01\n")
    (tmp_path / "chain" / "go.sh").write_text(
        "CFG=$1; . chain/common.sh\n"
        "[ -f fit.py ] || exit 3\n"
        "for lr in $(get lrs | tr , ' '); do\n"
        "  nohup nice -n 5 stdbuf -o L $(get python) fit.py --lr=$lr > fit.log 2>&1 &\n"
        "  wait\n"
        "done\n"
        "echo 1 2 | xargs -n 1 python3 infer.py\n"
    )
    (tmp_path / "fit.py").touch()
    monkeypatch.chdir(tmp_path)
    plan = record(Path("chain/go.sh"), Path("chain/toy.cfg"), "m")
    assert [(step.stage, step.argv, step.cwd) for step in plan.steps] == [
        ("train", ("python3", "fit.py", "--lr=0.1"), "."),
        ("train", ("python3", "fit.py", "--lr=0.01"), "."),
        ("infer", ("python3", "infer.py", "1"), "."),
        ("infer", ("python3", "infer.py", "2"), "."),
    ]
