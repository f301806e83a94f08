#!/bin/sh
# Makes a virtual environment with the pinned pip: make-venv.sh FOLDER CONSTRAINTS.
#
# Debian splits the module venv off Python, and keeps pip from installing into the system. Where
# venv is missing, virtualenv from PyPI does the same from a folder of its own.
set -eu

folder=$1
constraints=$2
python=${PYTHON:-python3}

"$python" - <<'PY' || exit 1
import sys
if not (3, 10) <= sys.version_info[:2] <= (3, 13):
    sys.exit(f"tipcheck needs Python 3.10 to 3.13, this is {sys.version.split()[0]}: "
             "say which one to use, as in `make demo PYTHON=python3.11`")
PY

rm -rf "$folder"
if ! "$python" -m venv "$folder" >/dev/null 2>&1; then
    rm -rf "$folder"
    echo "   this Python has no working venv module; using virtualenv from PyPI"
    "$python" -m pip install --quiet --disable-pip-version-check --constraint "$constraints" \
        --upgrade --target .bootstrap virtualenv
    PYTHONPATH=.bootstrap "$python" -m virtualenv --quiet "$folder"
fi
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint "$constraints" pip
