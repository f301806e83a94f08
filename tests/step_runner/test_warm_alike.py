"""What a forked script must not notice: each of these runs both ways, and gives the same."""

from __future__ import annotations

import os
import re
import sys
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.step_runner.conftest import MARK, Jobs, marked_processes, wait_until
from tests.step_runner.test_engines import run_one
from tipcheck.step_runner.local import LocalEngine
from tipcheck.step_runner.warm import WarmEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tipcheck.step_runner.contract import End

pytestmark = pytest.mark.paddle

IS_WARM = "b'warm_server' in open('/proc/self/cmdline', 'rb').read()"

SHARED = {"PYTHONUNBUFFERED": "1"}

SCRIPTS = {
    "what it is": """
        import inspect, os, sys
        print(__name__, __file__, __spec__, __package__, __doc__, type(__loader__), __builtins__)
        print(sorted(globals()), sys.argv, sys.orig_argv, sys.executable, sys.flags)
        print(sys.path, os.getcwd(), sys.modules['__main__'].__file__, sys.stdin.read())
        print(sys.stdout.encoding, sys.stdout.line_buffering, sys.stderr.line_buffering)
        print([name for name in sys.modules if name.startswith(('tipcheck', 'paddle'))])
        import gc, threading
        print(gc.isenabled(), gc.get_threshold(), threading.current_thread().name)
        print(sorted(n for n in os.listdir('/proc/self/fd') if int(n) < 10), os.umask(0o22))
        print(os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid())
    """,
    "signals": """
        import signal, sys
        print([signal.getsignal(n) for n in (2, 13, 15, 17, 25, 1, 11)])
    """,
    "environment": """
        import os, sys
        before = {k: v for k, v in os.environ.items()}
        import paddle
        print(sys.path)
        print({k: v for k, v in os.environ.items() if before.get(k) != v})
        print(sorted(k for k in before if k != '_'))
    """,
    "an exception": """
        def f():
            raise KeyError('k')
        try:
            f()
        except KeyError:
            print('caught')
            1 / 0
    """,
    "a syntax error": "print('never')\nx = = 1\n",
    "an import error": "import paddle\nimport no_such_module\n",
    "a missing attribute of paddle": "import paddle\npaddle.nn.NoSuchLayer()\n",
    "exit code 3": "import sys\nsys.exit(3)",
    "exit with words": "import sys\nprint('out')\nsys.exit('no good')",
    "exit 300 and -1": "import sys\nsys.exit(-1)",
    "exit without a code": "raise SystemExit",
    "an interrupt": "raise KeyboardInterrupt",
    "its own hook": """
        import sys
        sys.excepthook = lambda t, v, tb: print('hook', t, tb.tb_lineno)
        1 / 0
    """,
    "its own broken hook": "import sys\nsys.excepthook = lambda t, v: print('hook')\n1 / 0",
    "atexit and threads": """
        import atexit, threading, time
        atexit.register(print, 'last')
        atexit.register(lambda: 1 / 0)
        def late():
            time.sleep(0.2)
            print('thread')
        threading.Thread(target=late).start()
        print('main')
    """,
    "objects that end": """
        class Loud:
            def __del__(self): print('gone')
        loud = Loud()
        ring = [Loud()]
        ring.append(ring)
        open_file = open('left_open.txt', 'w')
        open_file.write('kept')
        print('end')
    """,
    "future and names": """
        def f(x: 'nothing') -> None: ...
        print(f.__annotations__, (lambda y: y).__module__)
        x: int = 1
        print(__annotations__)
    """,
    "unicode": "# -*- coding: latin-1 -*-\nprint('\\u4e2d\\u6587 \\udcff'.encode())",
    "a child of multiprocessing": """
        import multiprocessing, os
        def work(n): return n * n
        if __name__ == '__main__':
            for how in ('fork', 'spawn'):
                with multiprocessing.get_context(how).Pool(2) as pool:
                    print(how, pool.map(work, [1, 2, 3]))
    """,
    "data loader workers": """
        import paddle
        class Data(paddle.io.Dataset):
            def __len__(self): return 8
            def __getitem__(self, i): return paddle.full([2], i).numpy()
        loader = paddle.io.DataLoader(Data(), batch_size=4, num_workers=2)
        print([batch[0].numpy().tolist() if isinstance(batch, list) else batch.numpy().tolist()
               for batch in loader])
    """,
    "training with a seed": """
        import paddle, numpy, random
        paddle.seed(7); numpy.random.seed(7); random.seed(7)
        net = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 1))
        adam = paddle.optimizer.Adam(parameters=net.parameters())
        for _ in range(5):
            x = paddle.to_tensor(numpy.random.rand(16, 4).astype('float32'))
            loss = (net(x) - random.random()).square().mean()
            loss.backward(); adam.step(); adam.clear_grad()
        print(repr(loss.item()), paddle.rand([3]).numpy(), paddle.in_dynamic_mode())
        static = paddle.jit.to_static(net, input_spec=[paddle.static.InputSpec([None, 4])])
        paddle.jit.save(static, 'model')
        from paddle import inference
        config = inference.Config('model.json', 'model.pdiparams')
        config.disable_glog_info()
        predictor = inference.create_predictor(config)
        print(predictor.run([paddle.ones([2, 4])])[0].numpy())
    """,
    "a segfault after paddle": "import paddle, ctypes\nprint('up')\nctypes.string_at(0)",
    "a segfault without paddle": "import ctypes\nprint('up')\nctypes.string_at(0)",
    "killed by itself": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "os._exit": "import os\nprint('lost or not', flush=True)\nos._exit(9)",
    "looking for paddle": """
        import importlib.util
        print(importlib.util.find_spec('paddle').name)
        from paddle.nn import functional
        import paddle, sys
        print(paddle.__spec__.origin == paddle.__file__)
        print(functional is sys.modules['paddle.nn.functional'])
    """,
}


Pair = tuple[LocalEngine, LocalEngine]


def code_of(text: str) -> str:
    lines = text.split("\n")
    if not lines[0].strip():
        lines = [line.removeprefix("        ") for line in lines[1:]]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Engines for all tests of this file: the server imports paddle once."""
    word = "warm" + uuid.uuid4().hex
    SHARED[MARK] = word
    with LocalEngine() as local, WarmEngine() as warm:
        yield local, warm
    assert wait_until(lambda: not marked_processes(word)), marked_processes(word)


def unmeasured() -> dict[str, str]:
    """Return this environment without what makes Python measure coverage in a script.

    Measuring changes how an interpreter ends: what its last objects print is lost.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


def facts(end: End) -> tuple[object, ...]:
    return (
        end.exit_code, end.signal, end.trouble, end.cut, end.hollow, end.left_behind,
        end.log_note, end.last_words,
    )  # fmt: skip


def comparable(text: str) -> str:
    """Return a log without what differs between any two processes: addresses, dates, ids."""
    text = re.sub(r"0x[0-9a-f]{6,}|PID \d+", "N", text)
    return "\n".join(line for line in text.split("\n") if "TimeInfo" not in line)


BUFFERED = ["an exception", "objects that end", "exit with words", "atexit and threads", "os._exit"]


@pytest.mark.parametrize(
    ("name", "unbuffered"), [*((name, "1") for name in SCRIPTS), *((n, "") for n in BUFFERED)]
)
def test_a_script_gives_the_same_both_ways(
    jobs: Jobs, pair: Pair, name: str, unbuffered: str
) -> None:
    (jobs.folder / "sub").mkdir()
    script = jobs.folder / "sub" / "script.py"
    script.write_text(code_of(SCRIPTS[name]))
    results = []
    for engine in pair:
        job = jobs.make(
            sys.executable, "sub/../sub/script.py", "--a=$(touch x)", "", "b c",
            env={**unmeasured(), "MINE": "v", **SHARED, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
        end = run_one(engine, job)
        log = comparable(jobs.read(job))
        left = jobs.folder / "left_open.txt"
        results.append((facts(end), log, left.read_text() if left.exists() else ""))
        assert (end.peak_memory_bytes or 0) > 5_000_000
    assert results[0][1].splitlines() == results[1][1].splitlines()
    assert results[0] == results[1]


@pytest.mark.parametrize("again", [1, 2])
def test_that_it_is_forked_and_starts_afresh(jobs: Jobs, pair: Pair, again: int) -> None:
    (jobs.folder / "script.py").write_text(
        f"print({IS_WARM})\n"
        "import random, numpy, paddle, uuid, tempfile, multiprocessing\n"
        "print(random.random())\nprint(numpy.random.rand())\nprint(paddle.rand([1]).item())\n"
        "print(uuid.uuid4())\nprint(next(tempfile._get_candidate_names()))\n"
        "print(numpy.random.default_rng().random())\n"
        "print(bytes(multiprocessing.current_process().authkey).hex())\n"
    )
    logs = []
    for n in range(2):
        log = str(jobs.folder / f"{n}.log")
        job = jobs.make(sys.executable, "script.py", env={**os.environ, **SHARED}, log=log)
        assert run_one(pair[1], job).exit_code == 0
        lines = [line for line in jobs.read(job).splitlines() if "arn" not in line]
        assert lines[0] == "True"
        logs.append(lines)
    assert not {*logs[0][1:]} & {*logs[1][1:]}
