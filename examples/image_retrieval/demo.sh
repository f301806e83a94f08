#!/usr/bin/env bash
# Everything, on a clean clone: data, both trainings, export, search, pictures, report.
#
#   bash demo.sh           the full recipe, on CIFAR-10 (139 MB are downloaded once, with npm)
#   bash demo.sh --lite    less than a minute, on generated images
#
# The words are those of run.py. Uses PYTHON (default python3) if it has PaddlePaddle; else it makes
# .venv here and installs requirements.txt into it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

python=${PYTHON:-python3}
can_run() {
    "$1" -c 'import paddle, PIL' 2> /dev/null
}
if ! can_run "$python"; then
    if ! can_run .venv/bin/python; then
        echo "== $python has no PaddlePaddle: installing requirements.txt into .venv"
        "$python" -m venv .venv
        .venv/bin/python -m pip install --quiet --disable-pip-version-check \
            --requirement requirements.txt
    fi
    python=.venv/bin/python
fi
# What Paddle says at every import, and what nobody has to act on.
export PYTHONWARNINGS="ignore:No ccache found"
exec "$python" run.py "$@"
