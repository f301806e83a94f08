"""What the generated documents say, in Chinese and in English: texts only, no layout."""

# ruff: noqa: RUF001 - Chinese text has its own punctuation

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """Every text of the documents in one language; ``{}`` parts are filled in."""

    overview: str
    overview_about: str
    overview_table: str
    columns: tuple[str, ...]
    legend: str
    from_results: str
    not_run: str
    none: str
    how: str
    how_about: str
    files: str
    files_about: tuple[tuple[str, str], ...]
    test: Mapping[str, str]
    about: Mapping[str, str]
    summary: str
    prepare: str
    prepare_about: str
    start: str
    start_about: str
    modes: Mapping[str, str]
    steps: str
    steps_about: str
    step_columns: tuple[str, ...]
    results: str
    results_columns: tuple[str, ...]
    results_missing: str
    speed: str
    speed_columns: tuple[str, ...]
    failures: str
    more: str
    stages: Mapping[str, str]
    outcomes: Mapping[str, str]
    document: str
    item: str
    place: str


CHINESE = Words(
    overview="TIPC 测试总览",
    overview_about="本目录检查模型从训练到推理的每一步能否跑通：训练、评估、导出静态图、用导出的模型推理。"
    "每个配置文件描述一条这样的链路，下表汇总各配置最近一次运行的情况。",
    overview_table="各配置的状态",
    columns=("模型", "测试", "训练", "评估", "导出", "推理", "说明文档"),
    legend="`✅ n/m`：m 步中有 n 步通过且全部通过；`❌ n/m`：有步骤没有通过；`⬜`：还没有运行；"
    "`—`：该配置没有这个阶段。",
    from_results="最近一次运行开始于 {started}。",
    not_run="还没有运行过任何测试，所以没有结果。"
    "运行下面的命令，再执行 `tipcheck docs` 更新本文档。",
    none="—",
    how="运行方法",
    how_about="在仓库根目录下执行。第一条命令检查配置、准备数据，第二条命令运行整条链路。"
    "只有全部步骤通过时，返回值才是 0。",
    files="目录内容",
    files_about=(
        ("configs/", "每个模型一个文件夹，每种测试一个配置文件"),
        ("docs/", "每种测试一份说明文档"),
        ("prepare.sh", "检查配置，准备数据"),
        ("test_train_inference_python.sh", "按配置运行整条链路"),
        ("common_func.sh", "以上脚本共用的函数"),
    ),
    test={
        "": "基础训练推理",
        "amp": "混合精度训练推理",
        "pact": "PACT 量化训练推理",
        "ptq": "离线量化推理",
    },
    about={
        "": "检查模型按默认精度训练、评估、导出和推理的整个过程。",
        "amp": "检查打开自动混合精度之后，训练、评估、导出和推理的整个过程。",
        "pact": "检查在训练中加入 PACT 量化之后，训练、评估、导出和推理的整个过程。",
        "ptq": "检查对已导出的模型做离线量化、再用量化模型推理的过程。",
    },
    summary="结论",
    prepare="准备",
    prepare_about="需要可用的 PaddlePaddle 环境和 tipcheck。"
    "小数据集可以用 `tipcheck lite-data` 制作。"
    "下面的命令检查配置，并把数据放到位：",
    start="运行",
    start_about="模式 `{mode}`（{about}）：",
    modes={
        "lite_train_lite_infer": "少量数据训练，少量数据推理",
        "lite_train_whole_infer": "少量数据训练，全部数据推理",
        "whole_train_whole_infer": "全部数据训练，全部数据推理",
        "whole_infer": "不训练，直接导出已有权重并推理",
        "klquant_whole_infer": "不训练，用 KL 离线量化后推理",
    },
    steps="执行的命令",
    steps_about="模式 `{mode}` 下，配置 `{config}` 依次执行：",
    step_columns=("步骤", "阶段", "命令", "日志"),
    results="实测结果",
    results_columns=("步骤", "结果", "用时（秒）", "内存峰值（MB）", "日志"),
    results_missing="`{config}` 还没有运行过，没有实测数据。",
    speed="推理性能",
    speed_columns=(
        "步骤", "设备", "精度", "batch size", "前处理（毫秒）", "推理（毫秒）", "后处理（毫秒）",
        "内存（MB）", "显存（MB）",
    ),
    failures="没有通过的步骤",
    more="只看会执行什么而不运行：",
    stages={"train": "训练", "eval": "评估", "export": "导出", "infer": "推理"},
    outcomes={
        "passed": "通过",
        "skipped": "通过（沿用之前的结果）",
        "failed": "失败",
        "blocked": "未执行（前面的步骤没有通过）",
        "timed out": "超时",
        "crashed": "崩溃",
        "hollow": "空跑（没有测到要测的内容）",
        "": "未执行（运行被中断）",
    },
    document="测试说明",
    item="- `{name}`：{about}",
    place="`{config}`，模式 `{mode}`，运行开始于 {started}：",
)  # fmt: skip

ENGLISH = Words(
    overview="TIPC tests: overview",
    overview_about="This folder checks that every step of a model's way from training to inference "
    "works: training, evaluation, export to a static graph, inference with what was exported. Each "
    "config describes one such chain; the table says how its last run went.",
    overview_table="State of the configs",
    columns=("Model", "Test", "Train", "Eval", "Export", "Infer", "Document"),
    legend="`✅ n/m`: all of the m steps passed; `❌ n/m`: only n of them did; `⬜`: not run yet; "
    "`—`: the config has no such stage.",
    from_results="The last run began at {started}.",
    not_run="Nothing was run yet, so there are no results. Run the commands below, then "
    "`tipcheck docs` to bring this document up to date.",
    none="—",
    how="How to run",
    how_about="In the root of the repo. The first command checks the config and prepares the data, "
    "the second runs the chain. It ends with 0 only if every step passed.",
    files="What is here",
    files_about=(
        ("configs/", "a folder for each model, in it a config for each test"),
        ("docs/", "a document for each test"),
        ("prepare.sh", "checks a config and prepares its data"),
        ("test_train_inference_python.sh", "runs the chain of a config"),
        ("common_func.sh", "functions that the scripts share"),
    ),
    test={
        "": "training and inference",
        "amp": "training with mixed precision, and inference",
        "pact": "training with PACT quantisation, and inference",
        "ptq": "post-training quantisation, and inference",
    },
    about={
        "": "Checks training, evaluation, export and inference in the model's usual precision.",
        "amp": "Checks training, evaluation, export and inference with automatic mixed precision "
        "turned on.",
        "pact": "Checks training, evaluation, export and inference with PACT quantisation in the "
        "training.",
        "ptq": "Checks the quantisation of an exported model, and inference with the result.",
    },
    summary="Summary",
    prepare="Prepare",
    prepare_about="PaddlePaddle and tipcheck have to be installed. `tipcheck lite-data` makes a "
    "small data set. These commands check the configs and put the data in its place:",
    start="Run",
    start_about="Mode `{mode}` ({about}):",
    modes={
        "lite_train_lite_infer": "train on little data, infer on little data",
        "lite_train_whole_infer": "train on little data, infer on all data",
        "whole_train_whole_infer": "train on all data, infer on all data",
        "whole_infer": "no training: export given weights and infer",
        "klquant_whole_infer": "no training: quantise by KL divergence and infer",
    },
    steps="What is executed",
    steps_about="In mode `{mode}`, `{config}` executes one after the other:",
    step_columns=("Step", "Stage", "Command", "Log"),
    results="Measured results",
    results_columns=("Step", "Outcome", "Time (s)", "Peak memory (MB)", "Log"),
    results_missing="`{config}` was not run yet; there is nothing measured.",
    speed="Speed of the inference",
    speed_columns=(
        "Step", "Device", "Precision", "Batch size", "Before (ms)", "Inference (ms)", "After (ms)",
        "Memory (MB)", "GPU memory (MB)",
    ),
    failures="Steps that did not pass",
    more="To see what would run without running it:",
    stages={"train": "train", "eval": "eval", "export": "export", "infer": "infer"},
    outcomes={
        "passed": "passed",
        "skipped": "passed (in an earlier run)",
        "failed": "failed",
        "blocked": "blocked (a step it needs did not pass)",
        "timed out": "timed out",
        "crashed": "crashed",
        "hollow": "hollow (tested nothing of what it was for)",
        "": "not run (the run was interrupted)",
    },
    document="document",
    item="- `{name}`: {about}",
    place="`{config}` in mode `{mode}`, run begun at {started}:",
)  # fmt: skip

LANGUAGES: Mapping[str, Words] = {"zh": CHINESE, "en": ENGLISH}
