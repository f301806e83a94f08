#!/usr/bin/env bash
# The part of `make demo` that runs the example: demo-example.sh FOLDER
#
# Works in a copy of examples/mobilenet_v3, so that the checkout stays clean. PYTHON names the
# interpreter of the virtual environment that tipcheck is in. A second run skips the steps that have
# passed, as nothing of them has changed; remove FOLDER to see them run again.
set -euo pipefail

folder=$1
mode=lite_train_lite_infer
mkdir -p "$folder"
cp -R examples/mobilenet_v3/. "$folder"
cd "$folder"
PATH=$(dirname "$PYTHON"):$PATH
export PATH

configs=()
# The longest first.
for name in train_pact_infer_python train_infer_python train_amp_infer_python; do
    configs+=("test_tipc/configs/mobilenet_v3_small/$name.txt")
done
bash test_tipc/prepare.sh "${configs[0]}" $mode
tipcheck run "${configs[@]}" --mode $mode --device cpu --epochs 15 --python "$PYTHON" --resume
printf '\n'
"$PYTHON" tools/summarise.py
printf 'summary: %s\n' "$folder/summary/summary.md"
