#!/usr/bin/env bash
# Functions the two scripts of this folder share.

# func_line FILE NUMBER: one line of a config, counted from 1.
func_line() {
    sed -n "${2}p" "$1"
}

# func_parser_key LINE: what stands before the first colon.
func_parser_key() {
    printf '%s\n' "${1%%:*}"
}

# func_parser_value LINE: what stands behind the first colon.
func_parser_value() {
    printf '%s\n' "${1#*:}"
}

# func_fail MESSAGE: say it and stop.
func_fail() {
    printf '%s: error: %s\n' "$(basename "$0")" "$1" >&2
    exit 2
}

# func_python CONFIG: the interpreter: PYTHON of the environment, else what line 3 says.
func_python() {
    local python=${PYTHON:-$(func_parser_value "$(func_line "$1" 3)")}
    command -v "$python" > /dev/null || func_fail "the interpreter '$python' is not installed:\
 write another one into line 3 of $1, or set PYTHON, as in PYTHON=python3 bash $0 $1"
    printf '%s\n' "$python"
}

# func_check_arguments CONFIG MODE: stop unless both make sense.
func_check_arguments() {
    [ -f "$1" ] || func_fail "the config '$1' does not exist"
    case "$2" in
        lite_train_lite_infer | lite_train_whole_infer | whole_train_whole_infer | whole_infer) ;;
        *) func_fail "unknown mode '$2': lite_train_lite_infer, lite_train_whole_infer,\
 whole_train_whole_infer or whole_infer" ;;
    esac
}

# func_status_lines RESULTS: the lines that such chains have always printed, from a results.json.
func_status_lines() {
    "${PYTHON:-python3}" - "$1" << 'EOF'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    steps = json.load(file)["steps"]
for step in steps:
    if step["outcome"] is not None:
        how = "successfully" if step["outcome"] in ("passed", "skipped") else "failed"
        what = f"{step['model_name']} - {step['command']}"
        print(f"\033[33m Run {how} with command - {what}!  \033[0m")
EOF
}
