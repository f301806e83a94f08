"""Small configs of each layout, for the tests of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TUTORIAL = """\
===========================train_params===========================
model_name:tiny
python:python3
gpu_list:0|0,1
--device:gpu|gpu
--epochs:lite_train_lite_infer=2|whole_train_whole_infer=50
--out:./output/
--batch:lite_train_lite_infer=4
--weights:null
train_model_name:last.pdparams
--data:./small
##
trainer:norm_train
norm_train:fit.py --lr 0.1
##
===========================eval_params===========================
eval:fit.py --only-eval
##
===========================infer_params===========================
--to:./exported/
--from:
norm_export:export.py --name tiny
##
train_model:./given.pdparams
infer_export:export.py --name tiny
##
inference:deploy/run.py
--device:gpu|cpu
--batch:1|8
--model:./exported/
--image:./a.jpg
--bench:True
"""

SUITE = """\
===========================train_params===========================
model_name:tiny
python:python3
gpu_list:0|0,1
use_gpu:True|True
cast:null
epoch:lite_train_lite_infer=1|whole_train_whole_infer=9
save:./output/
batch:lite_train_lite_infer=2
pretrained:null
train_model_name:latest
train_infer_img_dir:./images
null:null
##
trainer:norm_train
norm_train:tools/train.py -c a.yml -o
pact_train:null
fpgm_train:null
distill_train:null
null:null
null:null
##
===========================eval_params===========================
eval:tools/eval.py -c a.yml -o
null:null
##
===========================infer_params===========================
save_infer:./output/
weights:
norm_export:tools/export.py -c a.yml -o
quant_export:null
fpgm_export:null
distill_export:null
export1:null
export2:null
inference_dir:null
infer_model:./given/
infer_export:null
infer_quant:False
inference:tools/infer.py
--use_gpu:True|False
--mkldnn:False
--threads:1
--batch:1
--trt:False
--precision:fp32
--model:
--images:./whole
null:null
--benchmark:True
null:null
"""

KLQUANT = """\
===========================train_params===========================
model_name:tiny_KL
python:python3.7
Global.pretrained_model:
Global.save_inference_dir:null
infer_model:./given/
infer_export:quant.py
infer_quant:True
inference:infer.py
--use_gpu:True|False
--enable_mkldnn:False
--cpu_threads:6
--rec_batch_num:1
--use_tensorrt:False
--precision:int8
--model_dir:
--image_dir:./a.jpg
null:null
--benchmark:False
null:null
null:null
"""


def change(text: str, lines: Mapping[int, str | None]) -> str:
    """Return a config with some lines replaced, or removed where the new one is None."""
    kept = text.splitlines()
    for number in sorted(lines, reverse=True):
        line = lines[number]
        if line is None:
            del kept[number - 1]
        else:
            kept[number - 1] = line
    return "\n".join(kept) + "\n"


def put(folder: Path, repo: str, text: str | bytes, name: str = "train_infer_python.txt") -> Path:
    """Write a config where a repo of that name would have it."""
    path = folder / repo / "test_tipc" / "configs" / "tiny" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(text, str):
        path.write_text(text, "utf-8", newline="")
    else:
        path.write_bytes(text)
    return path


PTQ = """\
====ptq_params====
model_name:tiny
python:python3
--gpu:True
--from:./model/
--to:./ptq/
--data:./data/
--count:2
--size:2
##
trainer:ptq_train
ptq_train:quant.py
##
====infer_params====
inference:run.py
--device:gpu|cpu
--batch:1
--model:./ptq/
--image:./a.jpg
--bench:True
"""
