#!/bin/sh
# Sees to it that the one system library PaddlePaddle does not bring along is there: libgomp.
#
# Most machines have it, because a compiler brings it; a bare one does not.
set -eu

python=${PYTHON:-python3}
has_libgomp() { "$python" -c 'import ctypes; ctypes.CDLL("libgomp.so.1")' 2>/dev/null; }

has_libgomp && exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "   PaddlePaddle needs libgomp; installing the Debian package libgomp1"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends libgomp1 >/dev/null
fi
has_libgomp && exit 0
echo "PaddlePaddle needs the system library libgomp.so.1, which is not here." >&2
echo "Install it and run this again; on Debian and Ubuntu: sudo apt-get install libgomp1" >&2
exit 1
