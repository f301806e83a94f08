#!/usr/bin/env bash
# bash test_tipc/test_train_inference_python.sh CONFIG MODE [OPTIONS OF tipcheck run]
#
# Runs the chain of a config: train, eval, export, infer. Ends with 0 only if every step passed.
# Laid down by `tipcheck init`, which is how tipcheck knows where the outputs are.
# `tipcheck run --help` lists the options.

source "$(dirname "${BASH_SOURCE[0]}")/common_func.sh"
read_arguments "$@"
find_tipcheck

model_name=$(func_parser_value "$(sed -n 2p "${FILENAME}")")
LOG_PATH="./log/${model_name}/${MODE}"
OUTPUT="./test_tipc/output/${model_name}/$(basename "${FILENAME}" .txt)_${MODE}"

started=$(mktemp)
trap 'rm -f "${started}"' EXIT
"${TIPCHECK[@]}" run "${FILENAME}" --mode "${MODE}" --output "${OUTPUT}" \
    --status-format 2021 "${@:3}"
code=$?
if [ "${code}" -le 1 ] && [ "${OUTPUT}/results.json" -nt "${started}" ]; then
    print_status "${OUTPUT}/results.json"
    [ ! -d "${LOG_PATH}" ] || echo "logs: ${LOG_PATH}"
fi
exit "${code}"
