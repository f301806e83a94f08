"""The 32-line layout, command for command, in both readings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tipcheck.config_plans.planner import make_plan
from tipcheck.errors import UsageError

from .configs import TUTORIAL, change, put

if TYPE_CHECKING:
    from pathlib import Path

    from tipcheck.config_plans import Plan, Step

LITE = "lite_train_lite_infer"
OUT = f"./test_tipc/output/tiny/{LITE}"
ONE = f"{OUT}/norm_train_gpus_0_autocast_False_nodes_1.log"
TWO = f"{OUT}/norm_train_gpus_0,1_autocast_False_nodes_1.log"


def lines(plan: Plan) -> list[tuple[str, str | None]]:
    return [(" ".join(s.argv), s.env.get("CUDA_VISIBLE_DEVICES")) for s in plan.steps]


def plan(folder: Path, text: str = TUTORIAL, mode: str = LITE, **options: object) -> Plan:
    options.setdefault("profile", "tutorial")
    return make_plan(put(folder, "repo", text), mode, **options)  # type: ignore[arg-type]


def rules(step: Step) -> set[str]:
    return {note.rule for note in step.corrections}


def test_as_bash(tmp_path: Path) -> None:
    def stages(out: str, launch: str) -> list[tuple[str, str | None]]:
        return [
            (f"python3 {launch}fit.py --lr 0.1 --out={out} --epochs=2 --batch=4", None),
            (f"python3 fit.py --only-eval --weights={out}/last.pdparams", "0"),
            (f"python3 export.py --name tiny --from={out}/last.pdparams --to={out}", "0"),
            (f"python3 deploy/run.py --device=gpu --model={out} --batch=1 --bench=True", "0"),
            (f"python3 deploy/run.py --device=gpu --model={out} --batch=8 --bench=True", "0"),
            (f"python3 deploy/run.py --device=cpu --model={out} --batch=1 --bench=True", "0"),
            (f"python3 deploy/run.py --device=cpu --model={out} --batch=8 --bench=True", "0"),
        ]

    assert lines(plan(tmp_path, as_bash=True)) == [
        *stages(ONE, ""),
        *stages(TWO, "-m paddle.distributed.launch --gpus=0,1 "),
    ]


def test_the_corrected_reading(tmp_path: Path) -> None:
    steps = plan(tmp_path).steps
    train, evaluation, export, gpu, *_, cpu = steps[:7]
    assert train.env == {"CUDA_VISIBLE_DEVICES": "0"}
    assert train.gpus == ("0",)
    assert rules(train) == {"gpu-not-pinned"}
    assert steps[7].env == {"CUDA_VISIBLE_DEVICES": None}
    assert steps[7].gpus == ("0", "1")
    assert evaluation.needs == export.needs == (train.id,)
    assert gpu.needs == (train.id, export.id)
    assert "--image=./a.jpg" in gpu.argv
    assert rules(gpu) == {"image-path-dropped"}
    assert [note.line for note in gpu.corrections] == [31]
    assert (gpu.gpus, cpu.gpus) == (("0",), ())
    assert len({step.log for step in steps}) == len(steps) == len({step.id for step in steps})


def test_logs_that_the_bash_overwrites_get_another_name(tmp_path: Path) -> None:
    first, second = (plan(tmp_path).steps[index] for index in (3, 10))
    assert first.log == f"{OUT}/python_infer_gpu_batchsize_1.log"
    assert second.log == f"{OUT}/python_infer_gpu_batchsize_1_2.log"
    assert "log-overwritten" in rules(second)


def test_whole_infer(tmp_path: Path) -> None:
    assert lines(plan(tmp_path, mode="whole_infer", as_bash=True)) == [
        ("python3 export.py --name tiny --from=./given.pdparams --to=./exported/", None),
        *(
            (
                (
                    f"python3 deploy/run.py --device={device} --model=./exported/ --batch={batch} "
                    "--image=./a.jpg --bench=True"
                ),
                None,
            )
            for device in ("gpu", "cpu")
            for batch in (1, 8)
        ),
    ]


def test_whole_infer_without_an_export(tmp_path: Path) -> None:
    text = change(TUTORIAL, {25: "infer_export:null"})
    assert {step.stage for step in plan(tmp_path, text, "whole_infer").steps} == {"infer"}


def test_a_mode_without_values_drops_the_options(tmp_path: Path) -> None:
    train = plan(tmp_path, mode="lite_train_whole_infer", as_bash=True).steps[0]
    assert train.argv[-1].startswith("--out=")


def test_stages_that_are_null_are_left_out(tmp_path: Path) -> None:
    text = change(TUTORIAL, {17: "eval:null", 22: "norm_export:null"})
    assert {step.stage for step in plan(tmp_path, text).steps} == {"train"}
    assert plan(tmp_path, change(TUTORIAL, {14: "norm_train:null"})).steps == ()


def test_an_inference_of_null(tmp_path: Path) -> None:
    text = change(TUTORIAL, {27: "inference:null"})
    assert ("python3", "null") in {s.argv[:2] for s in plan(tmp_path, text, as_bash=True).steps}
    assert "infer" not in {step.stage for step in plan(tmp_path, text).steps}


def test_amp_and_two_trainers(tmp_path: Path) -> None:
    text = change(TUTORIAL, {13: "trainer:amp_train|norm_train", 4: "gpu_list:0"})
    trains = [s for s in plan(tmp_path, text, as_bash=True).steps if s.stage == "train"]
    assert [train.argv[4] for train in trains] == [
        f"--out={OUT}/amp_train_gpus_0_autocast_True_nodes_1.log",
        f"--out={OUT}/norm_train_gpus_0_autocast_True_nodes_1.log",
    ]


def test_several_machines(tmp_path: Path) -> None:
    text = change(TUTORIAL, {4: "gpu_list:192.168.0.1,192.168.0.2;0,1"})
    train, evaluation = plan(tmp_path, text, as_bash=True).steps[:2]
    assert train.argv[:5] == (
        "python3",
        "-m",
        "paddle.distributed.launch",
        "--ips=192.168.0.1,192.168.0.2",
        "--gpus=0,1",
    )
    assert evaluation.env == {"CUDA_VISIBLE_DEVICES": "0"}


def test_nine_gpus_are_one_machine(tmp_path: Path) -> None:
    text = change(TUTORIAL, {4: "gpu_list:0,1,2,3,4,5,6,7,8"})
    assert "launch" not in " ".join(plan(tmp_path, text, as_bash=True).steps[0].argv)
    last = plan(tmp_path, text, as_bash=True).steps[-1]
    assert last.env == {"CUDA_VISIBLE_DEVICES": ""}
    train = plan(tmp_path, text).steps[0]
    assert "--gpus=0,1,2,3,4,5,6,7,8" in train.argv
    assert "gpu-list-by-length" in rules(train)


def test_a_cpu_training_pins_nothing(tmp_path: Path) -> None:
    steps = plan(tmp_path, change(TUTORIAL, {4: "gpu_list:-1"})).steps
    assert all(step.env.get("CUDA_VISIBLE_DEVICES") is None for step in steps)
    assert steps[0].env == {}
    assert steps[0].gpus == ()
    assert "gpu-not-pinned" not in rules(steps[0])


def test_the_device_of_one_entry_does_not_leak_into_the_next(tmp_path: Path) -> None:
    text = change(TUTORIAL, {22: "norm_export:null"})
    bash = [s for s in plan(tmp_path, text, as_bash=True).steps if s.stage == "train"]
    assert bash[1].env == {"CUDA_VISIBLE_DEVICES": "0"}
    right = [s for s in plan(tmp_path, text).steps if s.stage == "train"]
    assert right[1].env == {"CUDA_VISIBLE_DEVICES": None}
    assert "leaking-cuda-visible-devices" in rules(right[1])


def test_a_line_that_is_never_passed_on(tmp_path: Path) -> None:
    assert "--data=./small" not in plan(tmp_path).steps[0].argv
    (tmp_path / "known" / "test_tipc").mkdir(parents=True)
    (tmp_path / "known" / "fit.py").write_text('parser.add_argument("--data")\n')
    known = make_plan(put(tmp_path, "known", TUTORIAL), LITE, profile="tutorial").steps[0]
    assert "--data=./small" in known.argv
    assert not {argument for argument in known.argv if argument.startswith("--device")}
    assert {n.line for n in known.corrections if n.rule == "line-not-passed-on"} == {11}
    bash = make_plan(put(tmp_path, "known", TUTORIAL), LITE, profile="tutorial", as_bash=True)
    assert "--data=./small" not in bash.steps[0].argv


@pytest.mark.parametrize(
    ("line", "passed"),
    [
        (f"--data:whole_train_whole_infer=./all|{LITE}=./few", ["--data=./few"]),
        ("--data:whole_train_whole_infer=./all", []),
        ("--data:./small|./other", ["--data=./small"]),
    ],
)
def test_a_line_that_is_never_passed_on_may_be_by_mode(
    tmp_path: Path, line: str, passed: list[str]
) -> None:
    (tmp_path / "known" / "test_tipc").mkdir(parents=True)
    (tmp_path / "known" / "fit.py").write_text('parser.add_argument("--data")\n')
    config = put(tmp_path, "known", change(TUTORIAL, {11: line}))
    argv = make_plan(config, LITE, profile="tutorial").steps[0].argv
    assert [word for word in argv if word.startswith("--data")] == passed


@pytest.mark.parametrize("value", [" null", "null "])
def test_null_with_a_blank(tmp_path: Path, value: str) -> None:
    text = change(TUTORIAL, {22: f"norm_export:{value}"})
    assert "export" in {step.stage for step in plan(tmp_path, text, as_bash=True).steps}
    steps = plan(tmp_path, text).steps
    assert "export" not in {step.stage for step in steps}
    assert "null-with-blank" in {rule for step in steps for rule in rules(step)}


def test_blanks_flags_and_colons_are_put_right(tmp_path: Path) -> None:
    text = change(
        TUTORIAL,
        {
            2: "model_name: tiny ",
            9: "--weights:https://example.com/a.pdparams",
            28: "--device:Ture|Fasle",
            31: "--image: ./a.jpg ",
        },
    )
    steps = plan(tmp_path, text).steps
    assert steps[0].argv[-2] == "--weights=https://example.com/a.pdparams"
    assert rules(steps[0]) >= {"value-cut-at-colon", "blanks-around-value"}
    assert {a for s in steps for a in s.argv if a.startswith("--device")} == {
        "--device=True",
        "--device=False",
    }
    assert "misspelt-flag" in rules(steps[3])
    assert "--image=./a.jpg" in steps[3].argv
    with pytest.raises(UsageError, match=r":2: bash cannot write to the log"):
        plan(tmp_path, text, as_bash=True)
    bash = plan(tmp_path, text.replace(" tiny ", "tiny"), as_bash=True).steps
    assert bash[0].argv[-2] == "--weights=https"
    assert {step.stage for step in bash} == {"train", "eval", "export"}


def test_a_crlf_file(tmp_path: Path) -> None:
    text = "\ufeff" + TUTORIAL.replace("\n", "\r\n")
    steps = plan(tmp_path, text).steps
    assert steps[0].argv[0] == "python3"
    assert "carriage-return" in rules(steps[0])
    assert plan(tmp_path, text, as_bash=True).steps[0].argv[0] == "python3\r"


def test_the_older_generation(tmp_path: Path) -> None:
    steps = plan(tmp_path, profile="tutorial-log", as_bash=True).steps
    assert steps[0].argv[4] == f"--out=./log/tiny/{LITE}/norm_train_gpus_0"
    text = change(TUTORIAL, {4: "gpu_list:192.168.0.1,192.168.0.2;0,1"})
    steps = plan(tmp_path, text, profile="tutorial-log", as_bash=True).steps
    assert steps[0].argv[8] == f"--out=./log/tiny/{LITE}/norm_train_gpus_0,1_nodes_2"


def test_the_oldest_generation_knows_one_machine_only(tmp_path: Path) -> None:
    for gpus in ("0|0,1", "-1", "0,1,2,3,4,5,6,7"):
        text = change(TUTORIAL, {4: f"gpu_list:{gpus}"})
        plans = [
            plan(tmp_path, text, profile=name, as_bash=True).steps
            for name in ("tutorial-log", "tutorial-oldest")
        ]
        assert plans[0] == plans[1]
    for gpus in ("192.168.0.1,192.168.0.2;0,1", "0,1,2,3,4,5,6,7,8"):
        text = change(TUTORIAL, {4: f"gpu_list:{gpus}"})
        with pytest.raises(UsageError, match="no branch for so long an entry") as error:
            plan(tmp_path, text, profile="tutorial-oldest", as_bash=True)
        assert error.value.where.endswith(":4")
        assert plan(tmp_path, text, profile="tutorial-oldest").steps[0].argv[2:4] == (
            "paddle.distributed.launch",
            "--ips=192.168.0.1,192.168.0.2" if ";" in gpus else f"--gpus={gpus}",
        )


@pytest.mark.parametrize(
    "value", ["a.py $(touch x)", "a.py; rm b", "a.py `b`", "a.py && b", "a.py 'b"]
)
@pytest.mark.parametrize("as_bash", [True, False])
def test_text_that_a_shell_would_evaluate_names_its_line(
    tmp_path: Path,
    value: str,
    as_bash: bool,
) -> None:
    with pytest.raises(UsageError, match="a shell would") as error:
        plan(tmp_path, change(TUTORIAL, {14: f"norm_train:{value}"}), as_bash=as_bash)
    assert error.value.where.endswith(":14")


def test_quoted_text_is_passed_on_exactly(tmp_path: Path) -> None:
    text = change(TUTORIAL, {14: "norm_train:fit.py --say='$(a); `b` | ü'"})
    train = plan(tmp_path, text).steps[0]
    assert train.argv[2] == "--say=$(a); `b` | ü"
    assert "bar-turned-blank" in rules(train)
    assert plan(tmp_path, text, as_bash=True).steps[0].argv[2] == "--say=$(a); `b`   ü"


def test_a_value_of_a_megabyte(tmp_path: Path) -> None:
    text = change(TUTORIAL, {14: "norm_train:fit.py --x=" + "y" * 1_000_000})
    assert len(plan(tmp_path, text).steps[0].argv[2]) == 1_000_004


def test_no_program(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names no interpreter"):
        plan(tmp_path, change(TUTORIAL, {3: "python:", 14: "norm_train: ", 7: "null:", 6: "null:x",
                                         8: "null:x"}), as_bash=True)  # fmt: skip


def test_variables_before_the_program(tmp_path: Path) -> None:
    step = plan(tmp_path, change(TUTORIAL, {3: "python:FLAGS_a=1 python3"})).steps[0]
    assert step.env["FLAGS_a"] == "1"
    assert step.argv[0] == "python3"


@pytest.mark.parametrize("value", ["gpu", ";0", "a,b"])
def test_a_gpu_list_that_means_nothing(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match="no list of GPU ids") as error:
        plan(tmp_path, change(TUTORIAL, {4: f"gpu_list:{value}"}))
    assert error.value.where.endswith(":4")


@pytest.mark.parametrize("value", ["0||1", "1.1.1.1;0"])
def test_a_gpu_list_that_bash_would_stumble_over(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match="of the GPU list"):
        plan(tmp_path, change(TUTORIAL, {4: f"gpu_list:{value}"}), as_bash=True)


def test_an_unknown_mode_names_those_with_values(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        plan(tmp_path, mode="lite_train")
    assert error.value.hint == (
        "this config has values for lite_train_lite_infer, whole_train_whole_infer, whole_infer"
    )


def test_an_empty_value_that_bash_stumbles_over(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="print an error") as error:
        plan(tmp_path, change(TUTORIAL, {17: "eval:"}))
    assert error.value.where.endswith(":17")


def test_parl_ends_with_pip(tmp_path: Path) -> None:
    text = change(TUTORIAL, {2: "model_name:A2C", 4: "gpu_list:-1", 17: "eval:null",
                             22: "norm_export:null"})  # fmt: skip
    found = lines(plan(tmp_path, text, profile="parl", as_bash=True))
    assert [command for command, _ in found[1:]] == [
        "python3 -m pip install --upgrade pip",
        "xparl stop",
        "python3 -m pip uninstall gym -y",
        "python3 -m pip uninstall atari-py -y",
        "python3 -m pip uninstall opencv-python -y",
    ]


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (2, "model_name:a b"),
        (2, "model_name:*"),
        (29, "--batch:-o A=B"),
        (29, "--batch:~/x"),
        (29, "--batch:a/b"),
        (4, "gpu_list:0|-n x"),
        (4, "gpu_list:0|é"),
        (3, "python:"),
        (3, "python: "),
        (3, "python:-n"),
        (3, "python:-B"),
        (3, "python:%"),
        (3, "python:A=1"),
        (3, "python:python3|"),
        (3, "python:/usr/bin/"),
        (3, "python:python*"),
        (14, "norm_train:fit.py -o K=~/b"),
        (9, "--weights:./giv*"),
        (29, "--batch:1|giv*"),
        (12, "giv*"),
        (13, "giv*:norm_train"),
    ],
)
def test_what_bash_takes_apart_is_refused_where_it_stands(
    tmp_path: Path, number: int, line: str
) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "given.pdparams").touch()
    with pytest.raises(UsageError, match=rf"txt:{number}: "):
        plan(tmp_path, change(TUTORIAL, {number: line}), as_bash=True)


def test_a_pattern_that_matches_nothing_is_text(tmp_path: Path) -> None:
    text = change(TUTORIAL, {9: "--weights:./giv*", 14: "norm_train:fit.py --a=[4000,400] --b=~/c"})
    assert plan(tmp_path, text, as_bash=True).steps[0].argv[2:4] == ("--a=[4000,400]", "--b=~/c")
    assert "--weights=./giv*" in plan(tmp_path, text, as_bash=True).steps[0].argv


@pytest.mark.parametrize("as_bash", [True, False])
@pytest.mark.parametrize(
    "lines",
    [
        {4: "gpu_list:" + "0|" * 60_000},
        {28: "--device:" + "cpu|" * 300, 29: "--batch:" + "1|" * 300},
        {28: "--device:cpu|" + "npu|" * 60_000},
    ],
)
def test_lists_that_multiply_without_end_are_refused(
    tmp_path: Path, lines: dict[int, str], as_bash: bool
) -> None:
    line = max(lines)
    with pytest.raises(UsageError, match=rf"txt:{line}: .* over 50000 combinations"):
        plan(tmp_path, change(TUTORIAL, lines), as_bash=as_bash)


@pytest.mark.parametrize(
    ("name", "what"), [("../../../../x", "outside the repo"), ("a\x1b[31m", "cannot be shown")]
)
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str, what: str) -> None:
    with pytest.raises(UsageError, match=rf"txt:2: the log .* {what}"):
        plan(tmp_path, change(TUTORIAL, {2: f"model_name:{name}"}))


def test_a_log_that_is_taken_gets_the_next_number(tmp_path: Path) -> None:
    text = change(TUTORIAL, {4: "gpu_list:0", 29: "--batch:1|1_2|1", 31: "--image:a"})
    text = text.replace("gpu|cpu", "gpu|True")
    logs = [step.log.rsplit("/", 1)[1] for step in plan(tmp_path, text).steps]
    assert len(set(logs)) == len(logs)
    assert "python_infer_gpu_batchsize_1_2_2.log" in logs


@pytest.mark.parametrize(
    ("script", "passed"),
    [
        ("add = p.add_argument\nadd('--data')", True),
        ("from parser import get", True),
        ("p.add_argument('-d', '--data', choices=['./small', './big'])", True),
        ("p.add_argument('--data', choices=['./big'])", False),
        ("p.add_argument('--data', action='store_true')", False),
        ("# '--data'\nrun(['other.py', '--data', 'x'])", False),
        ("p.add_argument('--data-path')", False),
        ("print 'old'", False),
    ],
)
def test_a_line_is_passed_on_only_where_the_script_takes_it(
    tmp_path: Path, script: str, passed: bool
) -> None:
    path = put(tmp_path, "repo", TUTORIAL)
    (tmp_path / "repo" / "fit.py").write_text(script)
    (tmp_path / "repo" / "parser.py").write_text("p.add_argument('--data')")
    argv = make_plan(path, LITE).steps[0].argv
    assert ("--data=./small" in argv) is passed


@pytest.mark.parametrize("value", ["a\\", "it's", '"a'])
def test_a_value_does_not_take_in_the_next(tmp_path: Path, value: str) -> None:
    lines = {14: f"norm_train:fit.py {value}", 9: f"--weights:{value}"}
    with pytest.raises(UsageError, match="would not pass this on as text") as error:
        plan(tmp_path, change(TUTORIAL, lines))
    assert error.value.where.endswith(":9")
