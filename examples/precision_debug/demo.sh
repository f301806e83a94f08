#!/usr/bin/env bash
# Everything, on a clean clone: the models, and a table of what each way of running them gives.
#
#   bash demo.sh [MODEL]...
#
# Uses PYTHON (default python3) if it has PaddlePaddle; else it makes .venv here and installs
# requirements.txt into it, and tipcheck if this folder lies in its checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

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
exec "$python" demo.py "$@"
