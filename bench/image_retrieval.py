# ruff: noqa: RUF001 (half of the words are Chinese)
"""Measures examples/image_retrieval, the full recipe, and writes its README.

`python bench/image_retrieval.py`

Three seeds, each trained both ways, which takes minutes. What was interrupted goes on where it was,
and what is done is not trained again. `--only SEED` runs one seed and writes no page, where the
whole has to be cut in pieces. CIFAR-10 has to be there: `prepare_data.py` of the example makes it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "image_retrieval"
WORK = ROOT / "out" / "retrieval"
BEGIN, END = "<!-- measured:begin -->", "<!-- measured:end -->"

ENGLISH = {
    "page": "README.md",
    "seed": "seed",
    "network": "network",
    "untrained": "untrained",
    "trained in dygraph": "trained in dygraph",
    "trained under to_static, exported, loaded": "trained under `to_static`, exported, loaded",
    "chance": "chance",
    "losses": "Losses of the two trainings, step by step:",
    "equal": "equal bit for bit",
    "beyond": "first step beyond",
    "largest": "largest difference",
    "none": "none",
    "embeddings": "Largest difference of an embedding from the eager network's, same weights:",
    "epochs": "Mean loss of an epoch in dygraph (± the largest difference of a step):",
    "epoch": "epoch",
    "stage": "stage",
    "same": "queries with the same ten neighbours after export and loading",
}
CHINESE = {
    "page": "README.zh-CN.md",
    "seed": "种子",
    "network": "网络",
    "untrained": "未训练",
    "trained in dygraph": "动态图训练",
    "trained under to_static, exported, loaded": "`to_static` 训练，导出后加载",
    "chance": "随机",
    "losses": "两次训练的损失，逐步比较：",
    "equal": "逐位相等",
    "beyond": "首个超出的步",
    "largest": "最大差",
    "none": "无",
    "embeddings": "相同权重下，与 eager 网络的 embedding 的最大差：",
    "epochs": "动态图训练各 epoch 的平均损失（± 单步的最大差）：",
    "epoch": "epoch",
    "stage": "阶段",
    "same": "导出并加载后十个近邻完全相同的查询",
}


def main() -> int:
    """Run the seeds, write both pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", type=int, metavar="SEED", help="run one seed, write no page")
    parser.add_argument("--data-path", type=Path, default=EXAMPLE / "data")
    options = parser.parse_args()
    seeds = options.seeds if options.only is None else [options.only]
    found = [measure(seed, options.data_path.resolve()) for seed in seeds]
    if options.only is None:
        for words in (ENGLISH, CHINESE):
            write(EXAMPLE / words["page"], render(found, words))
    return 0


def measure(seed: int, data: Path) -> dict[str, Any]:
    """Run the recipe with a seed, unless it was run before; return what it found."""
    folder = WORK / f"seed{seed}"
    if not (folder / "results.json").is_file():
        command = [sys.executable, "run.py", f"--seed={seed}", f"--data-path={data}", "--resume"]
        subprocess.run([*command, f"--output-dir={folder}"], cwd=EXAMPLE, check=True)
    results: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    usual = {"epochs": 10, "batches": 1000, "lr": 1e-4, "temperature": 0.2, "seed": seed}
    if results["recipe"] != usual or results["data"] != "CIFAR-10":
        raise SystemExit(f"{folder} holds another recipe: delete it")
    return results


def table(head: list[str], rows: list[list[str]]) -> str:
    """Lay out a table, numbers to the right."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def render(found: list[dict[str, Any]], words: dict[str, str]) -> str:
    """Return the tables of a page."""
    seeds = [f"{words['seed']} {one['recipe']['seed']}" for one in found]
    rows = []
    for name in found[0]["retrieval"]:
        for measure_name in ("precision@1", "precision@10"):
            cells = [f"{one['retrieval'][name][measure_name]:.4f}" for one in found]
            rows.append([f"{words[name]}, {measure_name}", *cells])
    rows.append([words["chance"], *(f"{one['chance']:.4f}" for one in found)])
    rows.append([words["same"], *(one["same_neighbours"].split(" queries")[0] for one in found)])
    search = table([words["network"], *seeds], rows)

    agreements = [one["agreement"] for one in found]
    losses = table(
        ["", *seeds],
        [
            [words["equal"], *(f"{one['equal']:,} / {one['steps']:,}" for one in agreements)],
            [words["largest"], *(f"{one['largest']:.3g}" for one in agreements)],
            [
                f"{words['beyond']} 1e-05",
                *(
                    words["none"] if one["first_beyond"] is None else f"{one['first_beyond']:,}"
                    for one in agreements
                ),
            ],
        ],
    )
    epochs = table(
        [words["epoch"], *seeds],
        [
            [
                str(number),
                *(
                    f"{one['losses_by_epoch'][number]['mean_loss']['dygraph']:.4f} "
                    f"(±{one['losses_by_epoch'][number]['largest_difference']:.3g})"
                    for one in found
                ),
            ]
            for number in range(len(found[0]["losses_by_epoch"]))
        ],
    )
    stages = table(
        [words["stage"], *seeds],
        [[name, *(f"{one['embeddings'][name]:.3g}" for one in found)]
         for name in found[0]["embeddings"]],
    )  # fmt: skip
    parts = (search, words["losses"], losses, words["epochs"], epochs, words["embeddings"], stages)
    return "\n\n".join(parts)


def write(page: Path, text: str) -> None:
    """Put the tables between the marks of a page."""
    old = page.read_text(encoding="utf-8")
    before, _, rest = old.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"{page} has no {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
    print(f"wrote {page}")


if __name__ == "__main__":
    raise SystemExit(main())
