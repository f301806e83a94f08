"""One sentence that says what is wrong, for people who read nothing else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tipcheck.backends.stages import stage_kinds
from tipcheck.compare.verdict import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcheck.stage_ladder.rung import Rung

_ANSWERED = (Status.PASS, Status.SUSPECT, Status.FAIL)
_WHEN = {
    "to_static": "when the layer is traced into a program",
    "jit_load": "between the layer and its exported files",
    "executor": "when the exported program runs on the static executor",
    "inference": "when Paddle Inference runs the program",
    "inference_memory": "when memory reuse is switched on",
    "inference_ir": "when IR passes are switched on",
    "onednn": "when oneDNN kernels are used",
    "onednn_bf16": "when oneDNN computes in bfloat16",
    "onednn_int8": "when oneDNN computes in int8",
    "gpu": "on the GPU",
    "gpu_fp16": "on the GPU in float16",
    "gpu_bf16": "on the GPU in bfloat16",
    "trt_fp32": "with TensorRT",
    "trt_fp16": "with TensorRT in float16",
    "trt_int8": "with TensorRT in int8",
    "onnxruntime": "when the model is converted to ONNX and runs on ONNX Runtime",
    "openvino": "when the model is converted to ONNX and runs on OpenVINO",
}


def sentence_of(rungs: Sequence[Rung], bad: Sequence[Rung]) -> str:
    """Return what is wrong with a ladder, or that nothing is."""
    if not bad:
        answered = [rung for rung in rungs if rung.status is Status.PASS]
        names = f"{answered[0].stage} to {answered[-1].stage}" if len(answered) > 1 else "the stage"
        return f"the answers are the same at {len(answered)} stages, {names}"
    first = bad[0]
    told = [_first(first, rungs), *_decisions(first), *_agreement(first, rungs), *_truth(rungs)]
    crashed = [rung.stage for rung in bad[1:] if rung.status is Status.CRASH]
    if crashed:
        told.append(f"{', '.join(crashed)} did not finish")
    return "; ".join(told)


def _first(rung: Rung, rungs: Sequence[Rung]) -> str:
    if rung.status is Status.CRASH:
        return f"{rung.stage} {rung.reason}"
    if any(check.reason == rung.reason and check.reason for check in rung.state):
        return f"{rung.stage} depends on more than its inputs: {rung.reason}"
    when = _when(rung, rungs)
    if rung.bottom is None or (rung.bottom.status is Status.PASS and "noise" not in rung.reason):
        return f"{rung.stage}: {rung.reason}"
    verb = "change" if rung.status is Status.FAIL else "change more than rounding explains"
    return f"the answers {verb} {when} ({rung.bottom.where}: {rung.reason})"


def _when(rung: Rung, rungs: Sequence[Rung]) -> str:
    """Return what the answers changed with; only both ends of it where no stage is in between."""
    kinds = stage_kinds()
    names = list(kinds)
    one_change = {kinds[rung.stage].onto, names[max(0, names.index(rung.stage) - 1)]}
    one_change |= {"eager"} if rung.stage == "jit_load" else set()
    below = rung.below or rung.bottom
    answered = {other.stage for other in rungs if other.status in _ANSWERED}
    if below is None or one_change & answered:
        return _WHEN.get(rung.stage, f"at {rung.stage}")
    return f"between {below.stage} and {rung.stage}"


def _decisions(rung: Rung) -> list[str]:
    flips = rung.bottom.flips if rung.bottom else None
    if flips is None or not flips.flipped:
        return []
    return [f"{flips.flipped} of {flips.decisions} decisions flip"]


def _agreement(first: Rung, rungs: Sequence[Rung]) -> list[str]:
    """Say which later stages share the changed answers."""
    later = rungs[list(rungs).index(first) + 1 :]
    same: list[str] = []
    for rung in later:
        shares = rung.below is not None and rung.below.stage in (first.stage, *same)
        if shares and rung.below and rung.below.status is Status.PASS and not _is_good(rung):
            same.append(rung.stage)
    back = [rung.stage for rung in later if rung.status is Status.PASS]
    told = []
    if same:
        told.append(f"{', '.join(same)} agree{'s' if len(same) == 1 else ''} with {first.stage}")
    if back:
        told.append(f"{', '.join(back[:3])} {'is' if len(back) == 1 else 'are'} right again")
    return told


def _is_good(rung: Rung) -> bool:
    return rung.status is Status.PASS


def _truth(rungs: Sequence[Rung]) -> list[str]:
    """Say which side is further from the float64 referee, where there is one."""
    first = next((rung for rung in rungs if rung.status in (Status.FAIL, Status.SUSPECT)), None)
    if first is None or first.bottom is None or first.referee_db is None:
        return []
    if first.bottom.sqnr_db in (None, -math.inf):
        return []  # not a matter of distance
    reference = next((rung for rung in rungs if rung.stage == first.bottom.stage), None)
    if reference is None or reference.referee_db is None:
        return []
    one, other = first.referee_db, reference.referee_db
    if abs(one - other) < 6.0:
        return ["the export in float64 is equally far from both"]
    nearer, further = (first, reference) if one > other else (reference, first)
    return [f"the export in float64 sides with {nearer.stage} against {further.stage}"]
