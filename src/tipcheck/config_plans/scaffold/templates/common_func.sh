#!/usr/bin/env bash
# What the scripts of this folder share. Laid down by `tipcheck init`.

# The key and the value of a line of a config.
func_parser_key() { printf '%s\n' "${1%%:*}"; }
func_parser_value() {
    local rest="${1#*:}"
    printf '%s\n' "${rest%%:*}"
}

# Ends the script with a message.
stop() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit "$2"
}

# Sets TIPCHECK to the words that start tipcheck.
find_tipcheck() {
    if command -v tipcheck > /dev/null 2>&1; then
        TIPCHECK=(tipcheck)
    elif python3 -c 'import tipcheck' > /dev/null 2>&1; then
        TIPCHECK=(python3 -m tipcheck)
    else
        stop "tipcheck is not installed for this shell; type: python3 -m pip install -e FOLDER, a clone of it" 3
    fi
}

# Reads CONFIG and MODE and sets MODEL_NAME; ends the script when they are not there.
read_arguments() {
    FILENAME="${1:-}"
    MODE="${2:-}"
    if [ -z "${FILENAME}" ] || [ -z "${MODE}" ]; then
        stop "usage: bash test_tipc/${0##*/} CONFIG MODE, MODE such as lite_train_lite_infer" 2
    fi
    [ -f "${FILENAME}" ] || stop "${FILENAME}: no such config; start this in the repo's folder" 2
}

# The lines of a results.json as the chain has always printed them.
print_status() {
    python3 - "$1" <<'PYTHON'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    run = json.load(file)
for step in run["steps"]:
    if step["outcome"] is not None:
        passed = run["good"] or step["outcome"] in ("passed", "skipped")
        how = "successfully" if passed else "failed"
        print(f"\033[33m Run {how} with command - {step['command']}!  \033[0m")
PYTHON
}
