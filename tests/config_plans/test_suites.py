"""The 51-line family: what sets each suite apart, in both readings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tipcheck.config_plans.planner import make_plan
from tipcheck.errors import UsageError

from .configs import PTQ, SUITE, change, put

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tipcheck.config_plans import Plan, Step

LITE = "lite_train_lite_infer"
WHOLE = "whole_train_whole_infer"
TRAIN = "tools/train.py -c a.yml -o"


def plan(folder: Path, repo: str, text: str = SUITE, mode: str = LITE, **options: object) -> Plan:
    return make_plan(put(folder, repo, text), mode, **options)  # type: ignore[arg-type]


def bash(folder: Path, repo: str, text: str = SUITE, mode: str = LITE) -> list[Step]:
    return list(plan(folder, repo, text, mode, as_bash=True).steps)


def commands(steps: list[Step]) -> list[str]:
    return [" ".join(step.argv) for step in steps]


def rules(plan: Plan) -> set[str]:
    return {note.rule for step in plan.steps for note in step.corrections}


def test_ocr_command_for_command(tmp_path: Path) -> None:
    out = f"./test_tipc/output/tiny/{LITE}/norm_train_gpus_0_autocast_null"
    steps = bash(tmp_path, "PaddleOCR", change(SUITE, {4: "gpu_list:0"}))
    assert commands(steps) == [
        f"python3 {TRAIN} use_gpu=True save={out} epoch=1 batch=2",
        f"python3 tools/eval.py -c a.yml -o pretrained={out}/latest use_gpu=True",
        f"python3 tools/export.py -c a.yml -o weights={out}/latest save_infer={out}",
        (
            f"python3 tools/infer.py --use_gpu=True --trt=False --precision=fp32 --model={out} "
            "--batch=1 --images=./images --benchmark=True"
        ),
        (
            f"python3 tools/infer.py --use_gpu=False --mkldnn=False --threads=1 --model={out} "
            "--batch=1 --images=./images --benchmark=True --precision=fp32"
        ),
    ]
    seen = [step.env.get("CUDA_VISIBLE_DEVICES") for step in steps]
    assert seen == [None, "0", "0", "0", "0"]


def test_ocr_in_mixed_precision_quantised_on_several_gpus(tmp_path: Path) -> None:
    text = change(
        SUITE,
        {
            4: "gpu_list:0,1",
            6: "cast:amp",
            15: "trainer:pact_train",
            17: "pact_train:deploy/quant.py",
            31: "quant_export:deploy/export.py",
            36: "inference_dir:Student",
            42: "--mkldnn:True|False",
            45: "--trt:False|True",
            46: "--precision:fp32|fp16|int8",
        },
    )
    steps = bash(tmp_path, "PaddleOCR", text)
    assert steps[0].argv[:5] == (
        "python3", "-m", "paddle.distributed.launch", "--gpus=0,1", "deploy/quant.py",
    )  # fmt: skip
    assert "Global.use_amp=True" in steps[0].argv
    infer = [command for command in commands(steps) if "tools/infer.py" in command]
    assert len(infer) == 6
    assert all("/Student" in command for command in infer)
    assert sum("--precision=int8" in command for command in infer) == 3


def test_trainers_are_found_by_the_key_of_their_line(tmp_path: Path) -> None:
    text = change(
        SUITE,
        {
            4: "gpu_list:0",
            5: "use_gpu:True",
            15: "trainer:fpgm_train|distill_train|mine|yours|other|pact_train",
            18: "fpgm_train:fpgm.py",
            19: "distill_train:distill.py",
            20: "mine:mine.py",
            21: "yours:yours.py",
            24: "eval:null",
            30: "norm_export:null",
        },
    )
    scripts = [step.argv[1] for step in bash(tmp_path, "PaddleOCR", text)]
    assert scripts == ["fpgm.py", "distill.py", "mine.py", "yours.py", "tools/train.py"]
    detection = [step.argv[1] for step in bash(tmp_path, "PaddleDetection", text)]
    assert detection == ["fpgm.py", "distill.py", "yours.py"]


def test_whole_infer_of_several_models(tmp_path: Path) -> None:
    text = change(
        SUITE,
        {
            37: "infer_model:./a/|./b/x.pdparams",
            38: "infer_export:null|tools/export.py",
            39: "infer_quant:False|False",
            41: "--use_gpu:True|other",
        },
    )
    assert commands(bash(tmp_path, "PaddleOCR", text, "whole_infer")) == [
        (
            "python3 tools/infer.py --use_gpu=True --trt=False --precision=fp32 --model=./a/ "
            "--batch=1 --images=./whole --benchmark=True"
        ),
        "python3 tools/export.py weights=./b/x.pdparams save_infer=./b/x.pdparams",
        (
            "python3 tools/infer.py --use_gpu=True --trt=False --precision=fp32 "
            "--model=./b/x.pdparams --batch=1 --images=./whole --benchmark=True"
        ),
    ]
    export = commands(bash(tmp_path, "PaddleVideo", text, "whole_infer"))[1]
    assert export.endswith("save_infer=./b")


@pytest.mark.parametrize(("model", "folder"), [("x.pdparams", "."), ("/x/", "/"), ("a//b", "a")])
def test_the_folder_of_a_model(tmp_path: Path, model: str, folder: str) -> None:
    text = change(SUITE, {37: f"infer_model:{model}", 38: "infer_export:tools/export.py"})
    export = bash(tmp_path, "PaddleNLP/tests", change(text, {8: "null:", 28: "null:", 29: "null:",
                                                       47: "null:"}), "whole_infer")  # fmt: skip
    assert export[0].argv == ("python3", "tools/export.py")
    export = bash(tmp_path, "PaddleVideo", text, "whole_infer")
    assert export[0].argv[-1] == f"save_infer={folder}"


def test_clas_loses_epochs_and_repeats_itself(tmp_path: Path) -> None:
    text = change(SUITE, {9: "batch:8", 39: "infer_quant:Fasle", 46: "-o fp16:False|True"})
    steps = bash(tmp_path, "PaddleClas", text, WHOLE)
    root = tmp_path / "PaddleClas"
    out = f"{root}/test_tipc/output/tiny/{WHOLE}/norm_train_gpus_0_autocast_null_nodes_1"
    assert commands(steps)[0] == (
        f"python3 {TRAIN} use_gpu=True True save={out} epoch=2 -o AMP.use_amp=False batch=8 "
        "-o Global.print_mem_info=True"
    )
    assert f"pretrained={out}/tiny/latest" in steps[1].argv
    assert steps[3].cwd == "deploy"
    cpu = [step for step in steps if "--use_gpu=False" in step.argv]
    assert cpu[0].argv == cpu[1].argv
    right = plan(tmp_path, "PaddleClas", text, WHOLE)
    assert "epoch=9" in right.steps[0].argv
    assert {"epochs-lost", "duplicate-command", "device-list-passed-whole"} <= rules(right)
    assert "use_gpu=True" in right.steps[0].argv
    assert len([step for step in right.steps if "--use_gpu=False" in step.argv]) == 2


def test_clas_keeps_two_epochs_where_the_config_has_none_for_the_mode(tmp_path: Path) -> None:
    right = plan(tmp_path, "PaddleClas", change(SUITE, {9: "b:8"}), "lite_train_whole_infer")
    assert "epoch=2" in right.steps[0].argv
    assert "epochs-lost" not in rules(right)
    npu = bash(tmp_path, "PaddleClas", change(SUITE, {5: "use_gpu:npu", 9: "b:8"}))
    assert "epoch=1" in npu[0].argv


def test_clas_exports_recognition_models_without_weights(tmp_path: Path) -> None:
    text = change(SUITE, {2: "model_name:GeneralRecognition_x", 4: "gpu_list:0"})
    export = bash(tmp_path, "PaddleClas", text)[2]
    assert not any(argument.startswith("weights=") for argument in export.argv)
    right = plan(tmp_path, "PaddleClas", text).steps[2]
    assert any(a.startswith("weights=") and "/RecModel/latest" in a for a in right.argv)
    assert "export-without-weights" in {note.rule for note in right.corrections}


def test_clas_static_amp_and_quantisation(tmp_path: Path) -> None:
    text = change(SUITE, {15: "trainer:to_static_train", 20: "to_static_train:-o s=True"})
    assert commands(bash(tmp_path, "PaddleClas", text))[0].startswith(f"python3 {TRAIN} -o s=True")
    half = change(SUITE, {6: "cast:fp16|amp"})
    with pytest.raises(UsageError, match="depends on its version") as error:
        bash(tmp_path, "PaddleClas", half)
    assert error.value.where.endswith(":6")
    levels = {a for s in plan(tmp_path, "PaddleClas", half).steps for a in s.argv if "level" in a}
    assert levels == {"AMP.level=O2", "AMP.level=O1"}
    quant = change(SUITE, {34: "kl_quant:deploy/quant.py"})
    steps = bash(tmp_path, "PaddleClas", quant, "whole_infer")
    assert commands(steps)[0] == "python3 deploy/quant.py"
    assert {step.cwd for step in steps} == {"."}
    right = plan(tmp_path, "PaddleClas", quant, "klquant_whole_infer")
    assert [step.cwd for step in right.steps] == [".", "deploy", "deploy"]
    assert bash(tmp_path, "PaddleClas", quant, "klquant_whole_infer")[0].stage == "train"
    assert bash(tmp_path, "PaddleClas", SUITE, "whole_infer") == []


DET = change(
    SUITE,
    {
        5: "use_gpu:True",
        10: "pretrain_weights:https://example.com/a.pdparams",
        29: "weights:https://example.com/b.pdparams",
        37: "##",
        38: "infer_mode:norm|kl_quant",
        39: "infer_quant:False|True",
        46: "--run_mode:paddle|trt_int8",
    },
)


def test_det_keeps_later_colons_and_names_the_model(tmp_path: Path) -> None:
    steps = bash(tmp_path, "PaddleDetection", DET)
    out = f"./test_tipc/output/tiny/{LITE}/norm_train_gpus_0_autocast_null"
    assert commands(steps)[0] == (
        f"python3 {TRAIN} LearningRate.base_lr=0.0001 log_iter=1 use_gpu=True save={out} epoch=1 "
        "pretrain_weights=https://example.com/a.pdparams batch=2 filename=tiny"
    )
    assert commands(steps)[2] == (
        f"python3 tools/export.py -c a.yml -o weights={out}/tiny/latest filename=tiny "
        f"save_infer={out}"
    )
    assert steps[0].env == {"CUDA_VISIBLE_DEVICES": "0"}


def test_det_variants(tmp_path: Path) -> None:
    onnx = bash(tmp_path, "PaddleDetection", change(DET, {35: "export_onnx:True"}))
    assert [step.stage for step in onnx[:4]] == ["train", "eval", "export", "export"]
    assert "export_onnx=True" in onnx[2].argv
    cpu = bash(tmp_path, "PaddleDetection", change(DET, {4: "gpu_list:-1", 6: "cast:amp|fp16"}))
    assert "use_gpu=False" in cpu[0].argv
    assert {"amp_level=O1", "amp_level=O2"} <= {a for step in cpu for a in step.argv}
    static = DET + "====to_static_train_benchmark_params====\nto_static_train:--to_static\n"
    steps = bash(tmp_path, "PaddleDetection", change(static, {15: "trainer:to_static_train"}))
    assert "--to_static" in steps[0].argv


@pytest.mark.parametrize(
    ("mode", "scripts"),
    [("whole_infer", ["tools/export.py"]), ("klquant_whole_infer", ["quant.py"])],
)
def test_det_whole_infer(tmp_path: Path, mode: str, scripts: list[str]) -> None:
    text = change(DET, {36: "kl_quant_export:quant.py"})
    steps = bash(tmp_path, "PaddleDetection", text, mode)
    assert [step.argv[1] for step in steps if step.stage == "export"] == scripts
    assert any(argument == "--model=./output//tiny" for argument in steps[1].argv)


def test_det_tells_a_training_the_device_of_the_inference_before_it(tmp_path: Path) -> None:
    text = change(DET, {4: "gpu_list:0", 6: "cast:null|amp", 41: "--device:gpu|cpu"})

    def told(steps: Iterable[Step]) -> list[str]:
        options = [word for step in steps if step.stage == "train" for word in step.argv]
        return [word for word in options if word.startswith("use_gpu=")]

    assert told(bash(tmp_path, "PaddleDetection", text)) == ["use_gpu=True", "use_gpu=cpu"]
    right = plan(tmp_path, "PaddleDetection", text)
    assert told(right.steps) == ["use_gpu=True", "use_gpu=True"]
    assert "device-of-an-inference" in rules(right)


@pytest.mark.parametrize(
    ("lines", "number", "message"),
    [
        ({10: "pretrain_weights:a|b"}, 10, "pipes"),
        ({3: "python:OMP_NUM_THREADS=1 python3"}, 3, "timeout 5m"),
        ({6: "cast:amp |null"}, 6, "cannot write to the log"),
    ],
)
def test_det_refuses_what_its_bash_takes_apart(
    tmp_path: Path, lines: dict[int, str], number: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as error:
        bash(tmp_path, "PaddleDetection", change(DET, lines))
    assert error.value.where.endswith(f":{number}")


def test_det_names_one_process_by_no_machine(tmp_path: Path) -> None:
    nine = bash(tmp_path, "PaddleDetection", change(DET, {4: "gpu_list:0,1,2,3,4,5,6,7,8"}))
    assert f"save=./test_tipc/output/tiny/{LITE}/norm_train_gpus__autocast_null" in nine[0].argv
    ten = bash(tmp_path, "PaddleDetection", change(DET, {4: "gpu_list:10"}))
    assert [step.env.get("CUDA_VISIBLE_DEVICES") for step in ten[:4]] == [None, None, None, "10"]


def test_det_refuses_an_undefined_infer_mode(tmp_path: Path) -> None:
    kinds = change(DET, {38: "infer_mode:null|pact|fpgm|distill", 31: "quant_export:p.py",
                         32: "fpgm_export:f.py", 33: "distill_export:d.py"})  # fmt: skip
    steps = bash(tmp_path, "PaddleYOLO", kinds, "whole_infer")
    assert [s.argv[1] for s in steps if s.stage == "export"] == ["p.py", "f.py", "d.py"]
    with pytest.raises(UsageError, match="Undefined infer_mode") as error:
        bash(tmp_path, "PaddleDetection", change(DET, {38: "infer_mode:new"}), "whole_infer")
    assert error.value.where.endswith(":38")


def test_an_inference_on_no_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no inference would run") as error:
        plan(tmp_path, "PaddleOCR", change(SUITE, {41: "--use_gpu:xpu"}))
    assert error.value.where.endswith(":41")
    none = plan(tmp_path, "PaddleOCR", change(SUITE, {41: "--use_gpu:null"}))
    assert "infer" not in {step.stage for step in none.steps}


SEG = change(SUITE, {36: "====infer_params===="}) + "--model_name:tiny\n"


def test_seg_takes_the_last_iteration_and_the_deploy_file(tmp_path: Path) -> None:
    steps = bash(tmp_path, "PaddleSeg", SEG)
    out = f"./test_tipc/output/tiny/{LITE}/norm_train_gpus_0_autocast_null"
    assert f"pretrained={out}/iter_1/model.pdparams" in steps[1].argv
    assert f"--model={out}//deploy.yaml" in steps[3].argv
    assert steps[3].argv[-1] == "--model_name=tiny"
    evaluating = change(SEG, {16: "norm_train:tools/train.py --do_eval"})
    right = plan(tmp_path, "PaddleSeg", evaluating)
    assert f"pretrained={out}/latest" in right.steps[1].argv
    assert "weight-guessed" in rules(right)


def test_seg_trains_a_quantised_model_from_the_normal_one(tmp_path: Path) -> None:
    text = change(SEG, {15: "trainer:norm_train|pact_train", 17: "pact_train:quant.py"})
    with pytest.raises(UsageError, match="depends on its version"):
        bash(tmp_path, "PaddleSeg", text)
    steps = plan(tmp_path, "PaddleSeg", text).steps
    first, second = [step for step in steps if step.stage == "train"][:2]
    assert second.needs == (first.id,)
    assert any(argument.startswith("pretrained=") for argument in second.argv)


def test_medicalseg(tmp_path: Path) -> None:
    repo = "PaddleSeg/contrib/MedicalSeg"
    steps = bash(tmp_path, repo, change(SEG, {4: "gpu_list:0", 6: "--precision:fp32"}))
    assert "--precision=fp32" not in steps[0].argv
    assert steps[1].argv[-2].endswith("/best_model/model.pdparams")
    with pytest.raises(UsageError, match="not known for certain"):
        bash(tmp_path, repo, change(SEG, {6: "--precision:fp32"}))


RS = change(
    SUITE,
    {
        2: "model_name:cd:tiny",
        11: f"--config:{LITE}=./a.yaml",
        12: "train_model_name:best",
        30: "--shape:[-1,3,8,8]\nnorm_export:export.py",
        36: "export2:null\n====infer_params====",
        37: "infer_model:null",
        42: "--mkldnn:True",
        48: "--config:null",
    },
).replace("export2:null\n====", "====")


def test_rs_names_task_and_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="passes to an evaluation"):
        bash(tmp_path, "PaddleRS", RS)
    found = plan(tmp_path, "PaddleRS", change(RS, {24: "eval:null"}), as_bash=True)
    out = f"./test_tipc/output/cd/tiny/{LITE}/norm_train_gpus_0_autocast_null"
    assert found.model_name == "tiny"
    steps = list(found.steps)
    assert commands(steps)[0].startswith(
        f"python3 {TRAIN} --config=./a.yaml use_gpu=True save={out}"
    )
    export = next(step for step in steps if step.stage == "export")
    assert export.argv[-2:] == (f"save_infer={out}/static", "--shape=[-1,3,8,8]")
    assert bash(tmp_path, "PaddleRS", RS, "whole_infer") == []
    with pytest.raises(UsageError, match="nothing to run"):
        plan(tmp_path, "PaddleRS", RS, "whole_infer")
    assert plan(tmp_path, "PaddleRS", RS).model_name == "tiny"


PLAIN = change(
    SUITE,
    {5: "##", **dict.fromkeys((43, 44, 45, 46, 48, 51), "null:null")},
)


def test_gan_takes_weights_and_folder_as_plain_arguments(tmp_path: Path) -> None:
    text = change(PLAIN, {11: "train_model_name:t*/last", 29: "load:w", 28: "--out:"})
    steps = bash(tmp_path, "PaddleGAN", text)
    export = next(step for step in steps if step.stage == "export")
    assert export.argv[-3:-1] == (
        f"./test_tipc/output/tiny/{LITE}/norm_train_gpus_0_autocast_null/t*/last",
        "--out",
    )
    assert export.patterns == (len(export.argv) - 3,)
    assert {s.env.get("CUDA_VISIBLE_DEVICES") for s in steps if s.stage == "infer"} == {"0", "0,1"}
    whole = change(text, {38: "infer_export:e.py"})
    export = bash(tmp_path, "PaddleGAN", whole, "whole_infer")[0]
    assert export.argv[-3:] == ("w=./given/", "--out", ".")
    half = change(text, {6: "c:fp16"})
    assert "--amp" in plan(tmp_path, "PaddleGAN", half).steps[0].argv


@pytest.mark.parametrize(
    ("repo", "lines"),
    [
        ("PaddleGAN", {6: "c:fp16"}),
        ("PaddleGAN", {44: "--batch:1"}),
        ("Paddle3D", {6: "c:amp"}),
        ("PaddleRec", {6: "c:amp"}),
        ("PaddleOCR", {15: "trainer:to_static_train"}),
    ],
)
def test_what_depends_on_the_version_of_a_chain_is_refused(
    tmp_path: Path, repo: str, lines: dict[int, str | None]
) -> None:
    with pytest.raises(UsageError, match="depends on its version") as error:
        bash(tmp_path, repo, change(PLAIN, lines))
    assert ":" in error.value.where
    assert plan(tmp_path, repo, change(PLAIN, lines)).steps


def test_paddle3d_forgets_the_output_folder(tmp_path: Path) -> None:
    text = change(PLAIN, {4: "gpu_list:0,1", 13: "--x:1"})
    train = bash(tmp_path, "Paddle3D", text)[0]
    assert train.argv.count("--x=1") == 2
    assert not any(argument.startswith("save=") for argument in train.argv)
    right = plan(tmp_path, "Paddle3D", text)
    assert any(argument.startswith("save=") for argument in right.steps[0].argv)
    assert "output-folder-forgotten" in rules(right)
    static = text + "====to_static_train_benchmark_params====\nstatic:--to_static True\n"
    half = change(static, {15: "trainer:static", 6: "c:fp16"})
    steps = plan(tmp_path, "Paddle3D", half).steps
    assert {"--to_static", "--amp_level=O2"} <= set(steps[0].argv)


def test_video(tmp_path: Path) -> None:
    text = change(
        SUITE,
        {
            2: "model_name:PP-Tiny",
            7: "-o epochs:2",
            9: "-o size:16",
            12: "--more:1",
            13: "-o list:a.list",
            20: "amp_train:main.py --amp",
            25: "-w:null",
            47: "--model_file:m.pdmodel",
            51: "--params_file:m.pdiparams",
        },
    )
    steps = bash(tmp_path, "PaddleVideo", text)
    out = f"./test_tipc/output/PP-Tiny/{LITE}/norm_train_gpus_0_autocast_null_nodes_1"
    assert commands(steps)[:2] == [
        f"python3 {TRAIN} --max_iters=30 use_gpu=True -o save={out} -o epochs=2 -o size=16 "
        "-o list=a.list --more=1".replace("-o save", "save"),
        (
            f"python3 tools/eval.py -c a.yml -o use_gpu=True -w={out}/ppTiny_epoch_00001.pdparams "
            "-o list=a.list"
        ),
    ]
    assert f"--model_file={out}/m.pdmodel" in steps[3].argv
    assert steps[-1].argv[-1].endswith("/m.pdiparams")
    long = bash(tmp_path, "PaddleVideo", text, WHOLE)
    assert commands(long)[0] == f"python3 {TRAIN} use_gpu=True save={out}".replace(LITE, WHOLE)
    many = next(s for s in steps if "paddle.distributed.launch" in s.argv)
    assert many.argv[1:5] == ("-B", "-m", "paddle.distributed.launch", "--devices=0,1")
    amp = bash(tmp_path, "PaddleVideo", change(text, {15: "trainer:amp_train"}))
    assert amp[0].argv[1:3] == ("main.py", "--amp")
    for lines in ({6: "c:fp16"}, {46: "--precision:int8"}):
        with pytest.raises(UsageError, match="depends on its version"):
            bash(tmp_path, "PaddleVideo", change(text, lines))
    assert "--amp" in plan(tmp_path, "PaddleVideo", change(text, {6: "c:fp16"})).steps[0].argv


def test_rec_never_starts_a_training_on_several_gpus(tmp_path: Path) -> None:
    text = change(SUITE, {8: "save", 11: f"train_model_name:{LITE}=0", 36: "##"})
    steps = bash(tmp_path, "PaddleRec", text)
    assert len([step for step in steps if step.stage == "train"]) == 1
    assert steps[1].argv[-2].endswith("_nodes_1.log/0")
    right = plan(tmp_path, "PaddleRec", text)
    assert len([step for step in right.steps if step.stage == "train"]) == 2
    assert "training-never-started" in rules(right)


def test_speech_has_one_folder_for_all(tmp_path: Path) -> None:
    steps = bash(tmp_path, "PaddleSpeech/tests", change(SUITE, {6: "c:amp"}))
    assert steps[0].argv[6] == "save=./test_tipc/output/norm_train_gpus_0_autocast_amp"
    assert "Global.use_amp=True" in steps[0].argv


def test_nlp_refuses_what_depends_on_its_version(tmp_path: Path) -> None:
    bare = change(SUITE, dict.fromkeys((8, 10, 28, 29, 47), "null:null"))
    assert bash(tmp_path, "PaddleNLP/tests", bare)
    for lines in ({10: "weights:null"}, {34: "data:./x"}):
        with pytest.raises(UsageError, match="depends on its version"):
            bash(tmp_path, "PaddleNLP/tests", change(bare, lines))
    with pytest.raises(UsageError, match="depends on its version") as error:
        bash(tmp_path, "PaddleNLP/tests")
    assert error.value.where.endswith(":8")
    root = tmp_path / "PaddleNLP" / "tests"
    assert any(
        argument.startswith(f"save={root}/test_tipc/output/tiny")
        for argument in plan(tmp_path, "PaddleNLP/tests").steps[0].argv
    )


def test_a_file_that_ends_early(tmp_path: Path) -> None:
    text = "\n".join(SUITE.splitlines()[:23]) + "\n"
    assert {step.stage for step in bash(tmp_path, "PaddleOCR", text)} == {"train"}
    right = plan(tmp_path, "PaddleOCR", text)
    assert {step.stage for step in right.steps} == {"train"}
    assert "file-ends-early" in rules(right)


KLQUANT = """\
====params====
model_name:tiny_KL
python:python3
weights:
save:null
infer_model:./given/|./other/
infer_export:quant.py|null
infer_quant:True|True
inference:tools/infer.py
--use_gpu:True|False
--mkldnn:False
--threads:6
--batch:1
--trt:False
--precision:int8|fp16
--model:
--image_dir:./a.jpg
null:null
--benchmark:False
null:null
"""


def test_offline_quantisation(tmp_path: Path) -> None:
    found = plan(tmp_path, "PaddleOCR", KLQUANT, "whole_infer")
    assert found.profile == "klquant"
    found_commands = commands(list(found.steps))
    assert found_commands[0] == "python3 quant.py weights=./given/ save=./given/_klquant"
    assert len(found_commands) == 7
    assert bash(tmp_path, "PaddleOCR", KLQUANT, "whole_infer") == []
    with pytest.raises(UsageError, match="only the corrected reading"):
        plan(tmp_path, "anywhere", KLQUANT, "whole_infer", profile="klquant", as_bash=True)


def test_post_training_quantisation(tmp_path: Path) -> None:
    found = plan(tmp_path, "mine", PTQ, "whole_infer")
    assert found.profile == "ptq"
    for mode in ("lite_train_lite_infer", "lite_train_whole_infer", "whole_train_whole_infer"):
        same = commands(list(plan(tmp_path, "mine", PTQ, mode).steps))
        assert same == commands(list(found.steps))
    assert commands(list(found.steps)) == [
        "python3 quant.py --gpu=True --from=./model/ --count=2 --size=2 --data=./data/ --to=./ptq/",
        "python3 run.py --device=gpu --model=./ptq/ --batch=1 --image=./a.jpg --bench=True",
        "python3 run.py --device=cpu --model=./ptq/ --batch=1 --image=./a.jpg --bench=True",
    ]
    with pytest.raises(UsageError, match="only the corrected reading"):
        plan(tmp_path, "mine", PTQ, "whole_infer", profile="ptq", as_bash=True)
