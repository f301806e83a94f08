#!/usr/bin/env bash
# Prepare what a mode needs: the images, their archive, the demo image; for whole_train_whole_infer
# the larger data set; for whole_infer, and for a PTQ config in any mode, trained weights.
#
#   bash test_tipc/prepare.sh test_tipc/configs/mobilenet_v3_small/train_infer_python.txt whole_infer
#
# PYTHON in the environment is used instead of line 3 of the config.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source test_tipc/common_func.sh

case "${1:-}" in
    "" | -h | --help)
        echo "usage: bash test_tipc/prepare.sh CONFIG [MODE]"
        [ -n "${1:-}" ] && exit 0 || exit 2
        ;;
esac
config=$1
mode=${2:-lite_train_lite_infer}
func_check_arguments "$config" "$mode"
python=$(func_python "$config")

trainer=
weights=$(func_parser_value "$(func_line "$config" 24)")
if [[ "$(func_line "$config" 1)" == *ptq_params* ]]; then
    weights=$(func_parser_value "$(func_line "$config" 5)")
    needs_weights=yes
else
    [ "$mode" = whole_infer ] && needs_weights=yes || needs_weights=
    [[ "$(func_line "$config" 14)" == *--pact_quant* ]] && trainer=--pact_quant
fi

"$python" tools/prepare_data.py
if [ "$mode" = whole_train_whole_infer ]; then
    "$python" tools/prepare_whole_data.py
fi

if [ -n "$needs_weights" ] && [ ! -f "$weights" ]; then
    echo "training $weights: 20 epochs, about a minute"
    mkdir -p "$(dirname "$weights")"
    trained=$(mktemp -d "$(dirname "$weights")/training.XXXXXX")
    trap 'rm -rf "$trained"' EXIT
    "$python" train.py --epochs=20 --batch-size=7 --output-dir="$trained" $trainer
    mv "$trained/latest.json" "${weights%.pdparams}.json"
    mv "$trained/latest.pdparams" "$weights"
    echo "$weights: written"
fi
