#!/usr/bin/env bash
# Run the chain of a config. The work is done by tipcheck, which stops at failures and says so in its
# exit status.
#
#   bash test_tipc/test_train_inference_python.sh CONFIG [MODE] [OPTIONS OF tipcheck run]
#
# PYTHON in the environment is used instead of line 3 of the config.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source test_tipc/common_func.sh

case "${1:-}" in
    "" | -h | --help)
        echo "usage: bash test_tipc/test_train_inference_python.sh CONFIG [MODE] [OPTIONS OF tipcheck run]"
        [ -n "${1:-}" ] && exit 0 || exit 2
        ;;
esac
config=$1
mode=${2:-lite_train_lite_infer}
func_check_arguments "$config" "$mode"
command -v tipcheck > /dev/null || func_fail "tipcheck is not installed: pip install -e FOLDER, where FOLDER is a checkout of tipcheck"
started=$(mktemp)
trap 'rm -f "$started"' EXIT
status=0
tipcheck run "$config" --mode "$mode" ${PYTHON:+--python "$PYTHON"} "${@:3}" || status=$?
results=test_tipc/output/results.json
if [ "$results" -nt "$started" ]; then
    func_status_lines "$results"
fi
exit "$status"
