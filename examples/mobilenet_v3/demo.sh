#!/usr/bin/env bash
# Everything, on a clean clone: data, training, evaluation, export, inference, mixed precision,
# quantisation.
#
#   bash demo.sh
#
# Uses PYTHON (default python3) if it has PaddlePaddle; else it makes .venv here and installs
# requirements.txt into it, and tipcheck if this folder lies in its checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

case "${1:-}" in
    "") ;;
    *)
        echo "usage: bash demo.sh"
        [ "$1" = -h ] || [ "$1" = --help ] && exit 0 || exit 2
        ;;
esac

python=${PYTHON:-python3}
can_run() {
    "$1" -c 'import paddle, PIL' 2> /dev/null
}
if ! can_run "$python"; then
    if ! can_run .venv/bin/python; then
        tipcheck=()
        [ ! -f ../../src/tipcheck/__init__.py ] || tipcheck=(--editable ../..)
        echo "== $python has no PaddlePaddle: installing requirements.txt into .venv"
        "$python" -m venv .venv
        .venv/bin/python -m pip install --quiet --disable-pip-version-check \
            --requirement requirements.txt "${tipcheck[@]}"
    fi
    python=.venv/bin/python
fi
# What Paddle says at every import, or of every training, and what nobody has to act on.
export PYTHONWARNINGS="ignore:No ccache found,ignore:When training"

say() {
    printf '\n== %s\n' "$1"
}

say "Data"
"$python" tools/prepare_data.py
say "Training in float32"
"$python" train.py --epochs=20 --batch-size=7 --output-dir=output/float32
say "Evaluation"
"$python" train.py --test-only --pretrained=output/float32/latest.pdparams
say "Export"
"$python" tools/export_model.py --pretrained=output/float32/latest.pdparams \
    --save-inference-dir=output/float32_infer
say "Inference"
"$python" deploy/inference_python/infer.py --model-dir=output/float32_infer \
    --img-path=images/demo.jpg --benchmark=True
say "Training in mixed precision"
"$python" train.py --amp_level=O2 --epochs=2 --output-dir=output/amp

if ! "$python" -c 'import tipcheck.quant' 2> /dev/null; then
    say "No quantisation: $python has no tipcheck, where PACT comes from (pip install -e its checkout)"
    exit 0
fi
say "Training with PACT quantisation, from the weights above"
"$python" train.py --pact_quant --pretrained=output/float32/latest.pdparams --epochs=2 \
    --output-dir=output/pact
say "Export of the quantised model"
"$python" tools/export_model.py --pretrained=output/pact/latest.pdparams \
    --save-inference-dir=output/pact_infer
say "Quantisation after the training"
"$python" deploy/ptq_python/post_quant.py --model_path=output/float32/latest.pdparams \
    --output_dir=output/ptq_infer
