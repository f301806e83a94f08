"""A worker that behaves as badly as its request asks; run by the tests of ``isolation``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from tipcheck.backends.isolation import answer_request


def work(request: dict[str, Any], answer: Callable[[dict[str, Any]], None]) -> None:
    answer({"pid": os.getpid(), "echo": request})
    behaviour = request["do"]
    if behaviour == "segfault":
        print("about to go", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    elif behaviour == "exit":
        print("giving up", file=sys.stderr, flush=True)
        os._exit(7)
    elif behaviour == "raise":
        raise ValueError("no such thing")
    elif behaviour == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        answer({"child": child.pid})
        time.sleep(600)
    elif behaviour == "leave a child":
        # The child inherits the pipe and outlives the worker: nobody may wait for it.
        os.set_inheritable(int(sys.argv[1]), True)  # noqa: FBT003
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], close_fds=False
        )
        answer({"child": child.pid})
    elif behaviour == "print":
        for _ in range(200_000):
            print("x" * 100)
        sys.stdout.flush()
        sys.stdout.buffer.write(b"\xff\xfe not text\n")
    elif behaviour == "environment":
        answer({"set": os.environ.get("TIPCHECK_TEST"), "files": os.listdir()})  # noqa: PTH208


if __name__ == "__main__":
    answer_request(work)
