#!/usr/bin/env bash
# Everything, on a clean clone: the models, and a table of what each way of running them gives.
#
#   bash demo.sh [MODEL]...
#
# Uses PYTHON (default python3) if it has PaddlePaddle; else it makes .venv here and installs
# requirements.txt into it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

python=${PYTHON:-python3}
if ! "$python" -c 'import paddle, PIL' 2> /dev/null; then
    echo "== $python has no PaddlePaddle: installing requirements.txt into .venv"
    "$python" -m venv .venv
    python=.venv/bin/python
    "$python" -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
fi
exec "$python" demo.py "$@"
