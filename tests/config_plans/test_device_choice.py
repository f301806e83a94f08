"""Choosing a device changes the lines that name devices, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config_plans.configs import SUITE, TUTORIAL
from tipcheck.config_plans.planner import make_plan
from tipcheck.errors import UsageError

MODE = "lite_train_lite_infer"


def config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "test_tipc" / "configs" / "tiny" / "train_infer_python.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def stages(tmp_path: Path, text: str, device: str | None, profile: str) -> list[str]:
    plan = make_plan(config(tmp_path, text), MODE, profile=profile, device=device)
    return [step.id for step in plan.steps]


def test_on_the_cpu_there_is_one_training_and_no_inference_on_a_gpu(tmp_path: Path) -> None:
    plan = make_plan(config(tmp_path, TUTORIAL), MODE, profile="tutorial", device="cpu")
    assert [step.stage for step in plan.steps if step.stage == "train"] == ["train"]
    assert not any(step.gpus for step in plan.steps)
    assert not any(step.env.get("CUDA_VISIBLE_DEVICES") for step in plan.steps)
    assert all("launch" not in " ".join(step.argv) for step in plan.steps)
    devices = {word for step in plan.steps if step.stage == "infer" for word in step.argv}
    assert "--device=cpu" in devices
    assert "--device=gpu" not in devices


def test_on_other_gpus_the_inferences_on_the_cpu_are_left_out(tmp_path: Path) -> None:
    plan = make_plan(config(tmp_path, TUTORIAL), MODE, profile="tutorial", device="gpu:2,3")
    [train] = [step for step in plan.steps if step.stage == "train"]
    assert "--gpus=2,3" in train.argv
    assert train.gpus == ("2", "3")
    infers = [step for step in plan.steps if step.stage == "infer"]
    assert infers
    assert all("--device=gpu" in step.argv for step in infers)


def test_a_training_is_told_where_the_chain_passes_that_on(tmp_path: Path) -> None:
    plan = make_plan(config(tmp_path, SUITE), MODE, profile="ocr", device="cpu")
    [train] = [step for step in plan.steps if step.stage == "train"]
    assert "use_gpu=False" in " ".join(train.argv)


def test_without_a_device_nothing_changes(tmp_path: Path) -> None:
    both = stages(tmp_path, TUTORIAL, None, "tutorial")
    assert len([step for step in both if step.endswith("/train")]) == 2


def test_values_given_by_name_are_stronger(tmp_path: Path) -> None:
    path = config(tmp_path, TUTORIAL)
    plan = make_plan(path, MODE, profile="tutorial", device="cpu", values={"4": "7"})
    assert plan.steps[0].gpus == ("7",)


def test_a_config_for_gpus_only_is_run_on_the_cpu(tmp_path: Path) -> None:
    text = TUTORIAL.replace("--device:gpu|cpu\n", "--device:True\n")
    plan = make_plan(config(tmp_path, text), MODE, profile="tutorial", device="cpu")
    infers = [step for step in plan.steps if step.stage == "infer"]
    assert infers
    assert all("--device=False" in step.argv for step in infers)


def test_a_line_that_names_no_device_is_refused(tmp_path: Path) -> None:
    text = TUTORIAL.replace("--device:gpu|cpu\n", "--device:on|off\n")
    with pytest.raises(UsageError, match="no inference would run"):
        make_plan(config(tmp_path, text), MODE, profile="tutorial", device="cpu")


@pytest.mark.parametrize("device", ["", "gpu", "gpu:", "gpu:x", "cpu:0", "cpu:", "npu:0"])
def test_other_words_are_refused(device: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no device"):
        make_plan(config(tmp_path, TUTORIAL), MODE, profile="tutorial", device=device)


def test_several_processes_on_the_cpu(tmp_path: Path) -> None:
    path = config(tmp_path, TUTORIAL)
    one = make_plan(path, MODE, profile="tutorial", device="cpu")
    two = make_plan(path, MODE, profile="tutorial", device="cpu:2")
    trainings = [(a, b) for a, b in zip(one.steps, two.steps, strict=True) if b.stage == "train"]
    [(alone, together)] = trainings
    assert together.argv[:4] == (alone.argv[0], "-m", "paddle.distributed.launch",
                                 "--nproc_per_node=2")  # fmt: skip
    assert together.argv[4] == "--log_dir=" + alone.log.removesuffix(".log") + "_workers"
    assert together.argv[5:] == alone.argv[1:]
    assert together.env["PADDLE_DISTRI_BACKEND"] == "gloo"
    assert together.env["PADDLE_LOG_OVERWRITE"] == "1"
    assert one.steps[1:] == two.steps[1:]
    assert make_plan(path, MODE, profile="tutorial", device="cpu:1") == one


def test_a_training_that_cannot_be_several_processes(tmp_path: Path) -> None:
    text = TUTORIAL.replace("norm_train:fit.py", "norm_train:-m fit")
    with pytest.raises(UsageError, match="cannot be started as 2 processes"):
        make_plan(config(tmp_path, text), MODE, profile="tutorial", device="cpu:2")
